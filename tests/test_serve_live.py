"""A real server on loopback: runs in processes of their own, many readers, and its end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import typer
from roark_analytics import AsyncRoark
from typer.core import TyperGroup
from typer.testing import CliRunner

from duplex.cli import app as cli
from duplex.cli.config import _options
from duplex.options import RunOptions, make
from duplex.serve.launching import Processes, as_toml
from duplex.serve.refusals import Refusal
from plan_runs import options
from serve_support import TOKEN, stored
from verdict_runs import call

READERS = 100


class Served:
    """A server in a process of its own."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.runs = folder / "runs"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duplex", "serve", "--runs", str(self.runs), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.token = self.process.stderr.readline().removeprefix("token: ").strip()
        self.link = self.process.stderr.readline().removeprefix("page: ").strip()

    def ended(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, told = self.process.communicate(timeout=30)
        return self.process.returncode, told


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def wanted(folder: Path, **more: object) -> dict[str, object]:
    given = options(folder) | more
    del given["out"]
    return {name: str(one) if isinstance(one, Path) else one for name, one in given.items()}


async def test_the_client_starts_a_run_polls_it_and_has_its_verdict_while_many_read(
    served: Served, tmp_path: Path
) -> None:
    """Everything at once: native start, events, a hundred readers, Roark's start and cancel."""
    auth = {"authorization": f"Bearer {served.token}"}
    limits = httpx.Limits(max_connections=READERS + 10)
    async with httpx.AsyncClient(base_url=served.url, timeout=60, limits=limits) as http:
        body = {"options": wanted(tmp_path, samples=4)}
        assert (await http.post("/api/runs", json=body)).status_code == 401
        begun = await http.post("/api/runs", json=body, headers=auth)
        assert begun.status_code == 201, begun.text
        id = begun.json()["id"]
        paths = ["/api/runs", f"/api/runs/{id}", "/v1/simulation/plan/jobs"]
        events = asyncio.create_task(http.get(f"/api/runs/{id}/events"))
        answers = await asyncio.gather(
            *(http.get(paths[number % len(paths)]) for number in range(READERS))
        )
        assert {answer.status_code for answer in answers} == {200}
        told = (await events).text
        assert told.count("event: ended") == 8
        assert told.endswith('event: over\ndata: {"status": "completed"}\n\n')
        found = (await http.get(f"/api/runs/{id}")).json()
        assert found["verdict"]["passed"] is True
        assert len(found["calls"]) == 8
        again = await rerun(served)
        assert again != id
        page = await http.get(f"/api/runs/{again}")
        assert page.json()["run"]["status"] in ("completed", "cancelled")
        name = found["calls"][0]["id"]
        sound = await http.get(
            f"/api/runs/{id}/calls/{name}/audio.wav", headers={"range": "bytes=0-3"}
        )
        assert (sound.status_code, sound.content) == (206, b"RIFF")
    assert served.link == f"{served.url}/?enter={served.token}"
    code, said = served.ended()
    assert code == 0
    assert served.token not in said
    assert "Traceback" not in said


async def rerun(served: Served) -> str:
    """Start the run's plan again as Roark's client does, stop it, and wait for its end."""
    async with AsyncRoark(bearer_token=served.token, base_url=served.url) as roark:
        api = roark.simulation_run_plan_job
        plan = (await api.list()).data[0].simulation_run_plan_id
        job = (await api.start(plan)).data.simulation_run_plan_job_id
        await api.cancel(job)
        for _ in range(300):
            found = (await api.get_results(job)).data
            if found.run.status in ("COMPLETED", "CANCELLED"):
                break
            await asyncio.sleep(0.1)
        assert found.verdict is not None
        if found.debrief is not None:
            assert (await api.create_debrief(job)).data.status == "READY"
        ours = found.model_extra
        assert ours is not None
        return str(ours["duplex"]["run_id"])


async def test_a_run_that_cannot_begin_is_refused_with_its_own_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    launcher = Processes(tmp_path / "runs", limit=1)
    given = wanted(tmp_path, application="no_such_module_here:application")
    with pytest.raises(Refusal) as refused:
        await launcher.start(given)
    assert refused.value.status == 422
    assert "no_such_module_here" in refused.value.message
    assert list((tmp_path / "runs").iterdir()) == []


async def test_no_more_runs_go_on_than_are_allowed(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        await Processes(tmp_path, limit=0).start({})
    assert refused.value.status == 429


def test_every_option_of_a_run_reaches_its_process(tmp_path: Path) -> None:
    """What a request may say, the config of ``duplex run`` can say too, the same."""
    import tomllib

    text = {"scenario": ['"quoted"\n\x7fé'], "redact": ["phone"], "early_stop": False}
    given = make({**text, "samples": 3, "max_cost_usd": 1e-5, "seed": 9})
    read = tomllib.loads(as_toml(given, "run-1", tmp_path))["run"]
    assert read.pop("out") == str(tmp_path)
    assert read.pop("run_name") == "run-1"
    assert make(read) == given


def test_duplex_run_knows_every_option_by_the_name_it_has_in_a_config() -> None:
    verbs = typer.main.get_command(cli)
    assert isinstance(verbs, TyperGroup)
    known = set(_options(typer.Context(verbs.commands["run"])))
    assert len(known) > 40
    assert set(RunOptions.model_fields) <= known


def test_a_token_from_the_environment_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path / "runs", "run_one", call())
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "duplex", "serve", "--token-env", "MY_TOKEN"),
            *("--runs", str(tmp_path / "runs")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    path = f"{url}/api/runs/run_one/cancel"
    auth = {"authorization": f"Bearer {TOKEN}"}
    assert httpx.post(path, timeout=30).status_code == 401
    assert httpx.post(path, headers=auth, timeout=30).json()["asked"] is False
    server.send_signal(signal.SIGINT)
    said, told = server.communicate(timeout=30)
    assert server.returncode == 0
    assert TOKEN not in said + told


@pytest.mark.parametrize("value", ["", "short", "has a blank in it, does it"])
def test_a_token_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MY_TOKEN", value)
    given = ["serve", "--runs", str(tmp_path), "--token-env", "MY_TOKEN"]
    found = CliRunner().invoke(cli, given)
    assert found.exit_code == 2
    assert "token-env MY_TOKEN" in found.output


def test_an_address_that_cannot_be_listened_at_is_one_sentence(tmp_path: Path) -> None:
    given = ["serve", "--runs", str(tmp_path), "--host", "203.0.113.7"]
    found = CliRunner().invoke(cli, given)
    assert found.exit_code == 2
    assert "host 203.0.113.7 port 0: cannot listen" in found.output


def test_without_the_extra_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    found = CliRunner().invoke(cli, ["serve", "--runs", str(tmp_path)])
    assert found.exit_code == 2
    assert "pip install 'duplex-voice[serve]'" in found.output
    assert found.output.count("\n") == 1


def test_the_command_loads_nothing_of_the_server_before_it_is_asked() -> None:
    told = "import sys, duplex.cli; print('fastapi' in sys.modules, 'uvicorn' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["False", "False"]
