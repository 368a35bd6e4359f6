"""Who comes in at the door of ``duplex serve``: tokens, hosts, origins, bodies, paths."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duplex.serve import door
from serve_support import AUTH, TOKEN, application, begun, client, held, sounding, stored
from verdict_runs import call

RESULTS = "/v1/simulation/plan/job/run_one/results"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    stored(runs, "run_one", call())
    return runs


async def test_reading_on_loopback_needs_no_token(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        assert (await http.get("/api/runs")).status_code == 200
        assert (await http.get(RESULTS)).status_code == 200


@pytest.mark.parametrize("path", ["/api/runs", "/api/runs/run_one", RESULTS, "/openapi.json"])
async def test_reading_off_loopback_needs_the_token(runs: Path, path: str) -> None:
    app, _ = application(runs, bound="0.0.0.0")
    async with client(app) as http:
        refused = await http.get(path)
        assert refused.status_code == 401
        assert refused.json()["type"] == "authentication"
        assert (await http.get(path, headers=AUTH)).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs",
        "/api/runs/run_one/cancel",
        "/v1/simulation/plan/x/job",
        "/v1/simulation/plan/job/run_one/cancel",
        "/v1/simulation/plan/job/run_one/debrief",
    ],
)
async def test_every_write_needs_the_token(runs: Path, path: str) -> None:
    app, launcher = application(runs)
    async with client(app) as http:
        assert (await http.post(path, json={})).status_code == 401
    assert launcher.asked == []


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer x{TOKEN}",
        "Bearer \u00e9",
    ],
)
async def test_a_wrong_token_is_refused_even_where_none_is_needed(runs: Path, header: str) -> None:
    async with client(application(runs)[0]) as http:
        given = {"authorization": header.encode("latin-1")}
        answer = await http.get("/api/runs", headers=list(given.items()))  # type: ignore[arg-type]
        assert answer.status_code == 401
        assert TOKEN not in answer.text


async def test_two_tokens_are_no_token(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        twice = [("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer x")]
        assert (await http.get("/api/runs", headers=twice)).status_code == 401


async def test_tokens_are_compared_in_constant_time(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    whole = hmac.compare_digest

    def spy(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return whole(one, other)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    async with client(application(runs)[0]) as http:
        await http.get("/api/runs", headers={"authorization": "Bearer wrong"})
    assert compared == [(b"wrong", TOKEN.encode())]


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8700"},
        {"host": "user@127.0.0.1"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_another_sites_page_is_refused_with_and_without_a_token(
    runs: Path, headers: dict[str, str]
) -> None:
    app, launcher = application(runs)
    async with client(app) as http:
        for more in ({}, AUTH):
            assert (await http.get("/api/runs", headers=headers | more)).status_code == 403
            answer = await http.post("/api/runs", headers=headers | more, json={"options": {}})
            assert answer.status_code == 403
            assert answer.json()["type"] == "forbidden"
    assert launcher.asked == []


async def test_a_page_of_the_server_itself_is_let_in(runs: Path) -> None:
    own = {"origin": "http://127.0.0.1:8700", "sec-fetch-site": "same-origin"}
    async with client(application(runs)[0]) as http:
        assert (await http.get("/api/runs", headers=own)).status_code == 200


async def test_a_body_too_large_is_refused_before_anybody_reads_it(runs: Path) -> None:
    app, launcher = application(runs)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1_000_000):
            yield b"x" * 65_536

    async with client(app, **AUTH) as http:
        said = await http.post("/api/runs", content=b"x" * (door.BODY_BYTES + 1))
        streamed = await http.post("/api/runs", content=endless())
    assert [said.status_code, streamed.status_code] == [413, 413]
    assert launcher.asked == []


async def test_a_body_that_comes_too_slowly_is_refused(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "BODY_SECONDS", 0.05)
    app, _ = application(runs)
    sent = []

    async def never() -> dict[str, object]:
        import asyncio

        await asyncio.sleep(60)
        return {}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"authorization", AUTH["authorization"].encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/runs",
        "raw_path": b"/api/runs",
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8700),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
    await app(scope, never, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/..%2f..%2fetc/viewer.html",
        "/api/runs/%2e%2e/results.json",
        "/api/runs/..%5c..%5cetc/report.md",
        "/api/runs/run_one%00/viewer.html",
        "/api/runs/run_one/calls/..%2f..%2fsecret/audio.wav",
        "/api/runs/run_one/calls/%2e%2e%2fsecret/audio.wav",
        "/api/runs/run_one/../../secret.txt",
        "/api/runs/run_one/journal.jsonl",
        "/api/runs/.duplex-index.sqlite/results.json",
        "/v1/simulation/plan/job/..%2frun_one/results",
    ],
)
async def test_no_path_leads_out_of_the_store(runs: Path, path: str) -> None:
    (runs.parent / "secret.txt").write_text("SECRET")
    (runs / "secret").mkdir()
    (runs / "secret" / "conversation.wav").write_text("SECRET")
    async with client(application(runs)[0]) as http:
        answer = await http.get(path)
        assert answer.status_code == 404
        assert "SECRET" not in answer.text


async def test_a_link_out_of_a_run_is_not_followed(runs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    wav = sounding(runs, "run_one", "booking")
    wav.unlink()
    wav.symlink_to(secret)
    (runs / "run_one" / "viewer.html").unlink()
    (runs / "run_one" / "viewer.html").symlink_to(secret)
    async with client(application(runs)[0]) as http:
        for path in ("viewer.html", "calls/booking/audio.wav"):
            answer = await http.get(f"/api/runs/run_one/{path}")
            assert answer.status_code == 404
            assert "SECRET" not in answer.text


async def test_every_answer_is_kept_from_other_sites_and_sniffing(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        for path in ("/api/runs", "/nowhere", "/openapi.json"):
            headers = (await http.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "access-control-allow-origin" not in headers


async def test_whatever_can_be_got_has_a_head_without_a_body(runs: Path) -> None:
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    try:
        async with client(application(runs)[0]) as http:
            for path in (
                "/",
                "/api/runs",
                "/api/runs/run_one/results.json",
                "/api/runs/run_live/events",
                "/api/runs/lost",
            ):
                head = await http.head(path)
                assert head.content == b"", path
                assert head.status_code == (404 if path.endswith("lost") else 200), path
            whole = await http.get("/api/runs/run_one/results.json")
            head = await http.head("/api/runs/run_one/results.json")
            assert head.headers["content-length"] == str(len(whole.content))
            assert (await http.head("/v0/uploads/one")).status_code == 405
    finally:
        lock.release()
