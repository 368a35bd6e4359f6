"""Text becomes plain values strictly, and everything refused has its place."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.errors import InputError
from duplex.scenario.text import (
    MAX_ALIASES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_JSON_BYTES,
    MAX_YAML_BYTES,
    json_path,
    read_json,
    read_yaml,
)
from duplex.values import Json

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TREES = st.recursive(
    SCALARS | st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc<~ ", max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


def refused_json(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_json(text, "f.json")
    return str(caught.value)


def refused_yaml(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_yaml(text, "f.yaml")
    return str(caught.value)


@settings(max_examples=60)
@given(TREES)
def test_every_json_document_reads_as_the_standard_reads_it(tree: Json) -> None:
    text = json.dumps(tree)
    assert json.dumps(read_json(text, "f")) == text
    if len(text) < 1000:
        assert json.dumps(read_yaml(text, "f")) == text


def test_a_syntax_error_on_line_143_is_placed_there() -> None:
    lines = ["[", *("1," for _ in range(141)), "  oops", "]"]
    assert refused_json("\n".join(lines)).startswith("f.json:143:3: not JSON: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": [1,\n 2,]}', "f.json:2:"),
        ("{\n  'a': 1}", "f.json:2:3:"),
        ("{}\n{}", "f.json:2:1:"),
        ('{"a"\n\n:', "f.json:3:"),
    ],
)
def test_broken_json_is_placed(text: str, place: str) -> None:
    assert refused_json(text).startswith(place)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_refused_in_both_forms(word: str) -> None:
    assert refused_json(f'{{"a": {{"b": "NaN"}},\n  "c": [{word}]}}').startswith(
        f"f.json:2:9: {word} is no usable number"
    )
    assert refused_yaml(f"a: fine\nb: {word}").startswith(f"f.yaml:2:4: {word} is no usable")


@pytest.mark.parametrize("word", [".nan", ".NaN", ".inf", "-.Inf", "+.INF", "nan"])
def test_the_yaml_spellings_of_no_number_are_refused(word: str) -> None:
    assert "no usable number" in refused_yaml(f"a: {word}")
    assert read_yaml(f"a: '{word}'", "f") == {"a": word}


def test_integers_of_unbounded_length_are_refused() -> None:
    assert "f.json:1:2: 999" in refused_json(f"[{'9' * (MAX_DIGITS + 1)}]")
    assert "no usable number" in refused_yaml(f"- {'9' * (MAX_DIGITS + 1)}")
    assert read_json(f"[{'9' * MAX_DIGITS}]", "f") == [int("9" * MAX_DIGITS)]


def test_a_repeated_key_is_refused_with_both_places() -> None:
    text = '{"a": {"k": 1, "v": "k"},\n "b": [{"k": 1,\n "\\u006b": 2}]}'
    assert refused_json(text) == 'f.json:3:2: key "\\u006b" repeats the one at 2:9'
    assert refused_yaml("a:\n  k: 1\n  'k': 2") == 'f.yaml:3:3: key "k" repeats the one at 2:3'


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff".strip("\ufeff")])
def test_an_empty_document_says_so(text: str) -> None:
    assert refused_json(text) == "f.json: is empty"
    assert refused_yaml(text) == "f.yaml: is empty"


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 20_000])
def test_deep_nesting_is_refused_and_never_a_crash(depth: int) -> None:
    assert "deeper than" in refused_json("[" * depth + "1" + "]" * depth)
    assert "deeper than" in refused_yaml("[" * depth)


def test_the_deepest_nesting_allowed_is_read() -> None:
    deep = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert read_json(deep, "f") == read_yaml(deep, "f")


def test_oversized_text_is_refused_before_it_is_parsed() -> None:
    assert f"want at most {MAX_JSON_BYTES}" in refused_json("[" * (MAX_JSON_BYTES + 1))
    assert f"want at most {MAX_YAML_BYTES}" in refused_yaml("[" * (MAX_YAML_BYTES + 1))


def test_text_that_cannot_be_written_again_is_refused() -> None:
    assert "half a character" in refused_json('{"a": ["\\ud800"]}')
    assert "half a character" in refused_json('{"\\ud800": 1}')


def test_yaml_scalars_follow_the_grammar_of_json() -> None:
    text = """
        date: 2026-08-07
        time: 19:00
        answer: no
        switch: on
        octal: 007
        plus: +1
        hex: 0x1F
        whole: 12
        part: -2.5e3
        truth: true
        nothing: null
        empty:
        tilde: ~
        quoted: "12"
        block: |
          two
          lines
        tagged: !!str 12
    """
    assert read_yaml(text, "f") == {
        "date": "2026-08-07",
        "time": "19:00",
        "answer": "no",
        "switch": "on",
        "octal": "007",
        "plus": "+1",
        "hex": "0x1F",
        "whole": 12,
        "part": -2500.0,
        "truth": True,
        "nothing": None,
        "empty": None,
        "tilde": None,
        "quoted": "12",
        "block": "two\nlines\n",
        "tagged": "12",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: !!python/object/apply:os.system [echo]", "tag tag:yaml.org,2002:python"),
        ("a: !!binary aGk=", "tag tag:yaml.org,2002:binary is not allowed"),
        ("a: !mine x", "tag !mine is not allowed"),
        ("a: !!set {x}", "tag tag:yaml.org,2002:set is not allowed"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "f.yaml:3:3: merge keys are not allowed"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins"),
        ("? [a]\n: 1", "a key is not text"),
        ("a: &x k\n*x : 1", "a key is an alias"),
        ("a: &x\n  b: *x", "alias *x names nothing complete above it"),
        ("a: *missing", "alias *missing names nothing"),
        ("a: [1\nb: 2", "f.yaml:2:"),
        ("a: b: c", "f.yaml:1:5: not YAML"),
        ("a: \x07", "f.yaml:1:4: not YAML"),
    ],
)
def test_yaml_beyond_plain_values_is_refused_with_its_place(text: str, why: str) -> None:
    message = refused_yaml(text)
    assert why in message
    assert message.startswith("f.yaml:")


def test_aliases_are_copies_and_bounded() -> None:
    assert read_yaml("a: &x [1]\nb: *x", "f") == {"a": [1], "b": [1]}
    many = "a: &x 1\nb: [" + "*x, " * (MAX_ALIASES + 1) + "]"
    assert f"more than {MAX_ALIASES} aliases" in refused_yaml(many)


def test_aliases_of_aliases_cannot_grow_without_bound() -> None:
    levels = "abcdefgh"
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{now}: &{now} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, now in itertools.pairwise(levels)
    )
    assert "holds more than" in refused_yaml(text)


def test_paths_are_written_as_people_write_them() -> None:
    assert json_path(["scenarios", 2, "input", "a b", 'q"']) == 'scenarios[2].input["a b"]["q\\""]'
