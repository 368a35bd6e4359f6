"""What ``duplex serve`` may be told about the runs it creates, and one real server told so."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import plan_runs
from duplex.cli import app
from duplex.errors import InputError
from duplex.serve.library import Library
from duplex.serve.setting import Setting
from fake_models import in_turn, serving
from serve_support import Recorded
from test_serve_archive import packed
from test_serve_creating import BASE, SOURCE, drafts, settled
from test_serve_live import Served


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DUPLEX_BACKEND_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("options", "table", "said"),
    [
        ([], "nonsense = 1", "run.nonsense is unknown"),
        ([], "concurrency = 100", "concurrency"),
        ([], 'assistant = "nobody"', "nobody"),
        (["--agent", "support-agent"], "", "want NAME=ASSISTANT"),
        (["--agent", "support-agent=nobody"], "", "nobody"),
        (["--model-url", "http://127.0.0.1:1/v1"], "", "without model"),
        (["--model", "m-1"], "", "OPENAI_API_KEY"),
        (["--model", "m-1", "--model-url", "http://elsewhere.example/v1"], "", "plain text"),
        (["--model", "m-1", "--model-url", "nonsense"], "", "no url"),
    ],
)
def test_what_runs_cannot_be_held_with_is_refused_before_anything_is_served(
    tmp_path: Path, options: list[str], table: str, said: str
) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text(f"[run]\n{table}\n", encoding="utf-8")
    runs = ["--runs", str(tmp_path / "runs"), "--run-config", str(config)]
    done = CliRunner().invoke(app, ["serve", *runs, *options])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_file_of_another_verb_says_nothing_of_runs(tmp_path: Path) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text("[runn]\nclock = 'virtual'\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["serve", "--run-config", str(config)])
    assert done.exit_code == 2
    assert "did you mean [run]" in done.stderr


def test_what_only_the_screen_knows_is_left_out_and_what_a_run_brings_itself(
    tmp_path: Path,
) -> None:
    table: dict[str, object] = {"clock": "virtual", "json": True, "verbose": True}
    table |= {"out": "elsewhere", "run_name": "mine", "scenario": ["x"], "data": "y"}
    (tmp_path / "runs").mkdir()
    creator = Setting(run=table).creator(Library(tmp_path / "runs"), Recorded(tmp_path / "runs"))
    assert dict(creator._defaults.options) == {"clock": "virtual"}
    assert creator.writer is None
    with pytest.raises(InputError, match="typo"):
        Setting(run={"typo": 1}).creator(Library(tmp_path / "runs"), Recorded(tmp_path / "runs"))


async def test_a_server_writes_scenarios_from_a_source_and_holds_them(tmp_path: Path) -> None:
    """All of it over sockets: the model, the upload, a run in a process of its own."""
    given = plan_runs.options(tmp_path)
    kept = {name: one for name, one in given.items() if name not in ("scenario", "data", "out")}
    lines = [
        f"{name} = {json.dumps(str(one) if isinstance(one, Path) else one)}"
        for name, one in kept.items()
    ]
    config = tmp_path / "duplex.toml"
    config.write_text("\n".join(["[run]", *lines]), encoding="utf-8")
    with serving(in_turn([drafts("One", "Two")])) as fake:
        options = ["--run-config", str(config), "--model", "m-1", "--model-url", fake.url]
        server = Served(tmp_path, *options)
        try:
            headers = {"authorization": f"Bearer {server.token}"}
            async with (
                httpx.AsyncClient(base_url=server.url, timeout=60, headers=headers) as http,
                httpx.AsyncClient(timeout=60) as bare,
            ):
                asked = {"mode": "SIMULATION_MODE_AUDIO", "numSimulations": 2}
                made = (await http.post(BASE, json=asked)).json()
                id, post = made["simulationRunId"], made["presignedPostRequest"]
                files = {"file": ("source.tar.gz", packed(SOURCE))}
                sent = await bare.post(post["url"], data=post["values"], files=files)
                assert sent.status_code == 204, sent.text
                confirm = f"{BASE}/{id}:confirmSourceUpload"
                await http.post(confirm, json={"codeEntrypoint": "agent.py"})
                run = await settled(http, id, pause=0.2)
        finally:
            code, said = server.ended()
    assert run["status"] == "STATUS_COMPLETED", run
    assert run["jobCount"] == 2
    assert {job["label"] for job in run["jobs"]} == {"One", "Two"}
    assert all("scenarioId" not in job for job in run["jobs"])
    assert run["agentDescription"] == "It books tables."
    assert code == 0
    assert "Traceback" not in said
