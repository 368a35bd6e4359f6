"""Arithmetic over metrics: ``response_latency.p95 - response_latency.p50``.

Numbers, names of metrics, + - * / and brackets, nothing else; no code runs. Units
are kept: milliseconds add to milliseconds only, and their quotient has none. An
expression is None where a metric in it is, or where it divides by zero.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from duplex.errors import InputError
from duplex.verdict.case import Reading
from duplex.verdict.readings import Name, Unit, find

_LONGEST = 500
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A formula whose names exist and whose units agree."""

    text: str
    tree: ast.expr
    names: Mapping[str, Name]
    unit: Unit

    @property
    def only(self) -> Name | None:
        """The metric, where the expression is nothing but one."""
        return self.names.get(_dotted(self.tree) or "")

    def value(self, reading: Callable[[Name], Reading]) -> Reading:
        """Its value, each name read by ``reading``; a lone name keeps its type."""
        if self.only is not None:
            return reading(self.only)
        values = {text: reading(name) for text, name in self.names.items()}
        if any(not _is_number(value) for value in values.values()):
            return None
        numbers = {text: float(value) for text, value in values.items() if value is not None}
        try:
            found = _evaluated(self.tree, numbers)
        except ZeroDivisionError:
            return None
        return found if math.isfinite(found) else None


def parse(text: str) -> Expression:
    """Read an expression; raise InputError that says what is wrong with it."""
    text = text.strip()
    if len(text) > _LONGEST:
        raise InputError(f"expression has {len(text)} characters, want at most {_LONGEST}")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(
            f'"{text}" is no expression, want metrics, numbers, + - * / and ()'
        ) from None
    names: dict[str, Name] = {}
    unit = _unit(tree, names, text)
    if not names:
        raise InputError(f'"{text}" names no metric')
    return Expression(text=text, tree=tree, names=names, unit=unit)


def _unit(node: ast.expr, names: dict[str, Name], text: str) -> Unit:
    """The unit of a part; a share counts as a plain number once it is reckoned with."""
    dotted = _dotted(node)
    if dotted is not None:
        names[dotted] = name = find(dotted)
        return name.unit
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return ""
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _unit(operand, names, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            units = (_plain(_unit(left, names, text)), _plain(_unit(right, names, text)))
            return _combined(op, units, text)
    raise InputError(f'"{text}" is no expression, want metrics, numbers, + - * / and ()')


def _combined(op: ast.operator, units: tuple[Unit, Unit], text: str) -> Unit:
    left, right = units
    if isinstance(op, ast.Add | ast.Sub):
        if left != right:
            raise InputError(f'"{text}" adds milliseconds to a plain number')
        return left
    if isinstance(op, ast.Mult) and "ms" in units:
        if left == right:
            raise InputError(f'"{text}" multiplies milliseconds by milliseconds')
        return "ms"
    if isinstance(op, ast.Div) and right == "ms" and left != "ms":
        raise InputError(f'"{text}" divides a plain number by milliseconds')
    return "ms" if left == "ms" and right == "" else ""


def _plain(unit: Unit) -> Unit:
    return "" if unit == "share" else unit


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return None if head is None else f"{head}.{node.attr}"
    return None


def _evaluated(node: ast.expr, values: Mapping[str, float]) -> float:
    dotted = _dotted(node)
    if dotted is not None:
        return values[dotted]
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=op, operand=operand):
            value = _evaluated(operand, values)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_evaluated(left, values), _evaluated(right, values))
    raise AssertionError(f"an expression was parsed with {type(node).__name__}")


def _is_number(value: Reading) -> bool:
    return isinstance(value, int | float)
