"""Model files are the pinned ones, or the user's own; anything else is refused plainly."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

import pytest

from duplex.errors import InputError, MissingExtra
from duplex.local import weights
from duplex.local.engines import SpeechEngines, extra_status
from duplex.local.weights import Model, ModelFile, find_ears, find_mouth, require, verify


def model(path: Path, sha256: str | None) -> Model:
    return Model(name="test", files={"weights": ModelFile(path=path, sha256=sha256)})


def test_a_file_with_the_pinned_hash_passes(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    assert verify(model(file, digest)) == {"weights": digest}


def test_one_changed_byte_is_refused_with_file_got_and_wanted(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(b"weightz")
    wanted = hashlib.sha256(b"weights").hexdigest()
    with pytest.raises(InputError) as caught:
        verify(model(file, wanted))
    got = hashlib.sha256(b"weightz").hexdigest()
    assert all(part in str(caught.value) for part in (str(file), got, wanted))


def test_a_file_larger_than_one_read_is_hashed_whole(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    content = bytes(range(256)) * 9000
    file.write_bytes(content)
    assert verify(model(file, None))["weights"] == hashlib.sha256(content).hexdigest()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.bin"):
        verify(model(tmp_path / "absent.bin", None))


def test_own_ears_are_accepted_from_a_folder(tmp_path: Path) -> None:
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    found = find_ears(tmp_path)
    assert found.path("tokenizer") == tmp_path / "tokenizer.json"
    assert all(file.sha256 is None for file in found.files.values())


def test_an_own_voice_needs_its_settings_beside_it(tmp_path: Path) -> None:
    onnx = tmp_path / "voice.onnx"
    onnx.write_bytes(b"")
    with pytest.raises(InputError, match=r"voice\.onnx\.json"):
        find_mouth(onnx)
    (tmp_path / "voice.onnx.json").write_text("{}")
    assert find_mouth(onnx).path("weights") == onnx


def test_without_the_extra_the_one_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for attempt in (find_ears, find_mouth, lambda: require(("piper",), "the embedded voices")):
        with pytest.raises(MissingExtra) as caught:
            attempt()
        assert 'pip install "duplex-voice[local]"' in str(caught.value)


async def test_engines_do_not_open_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="duplex-voice"):
        await SpeechEngines.open()


def test_the_extra_is_looked_at_without_raising(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status = extra_status()
    assert "piper" in status.missing
    assert status.hashes == {}


@pytest.mark.parametrize("pinned", [weights.EARS_MODEL, weights.MOUTH_MODEL])
def test_every_file_of_a_wheel_is_pinned_by_a_whole_hash(pinned: weights.Pinned) -> None:
    hashes = [sha256 for _, sha256 in pinned.files.values()]
    assert all(len(sha256) == 64 and int(sha256, 16) for sha256 in hashes)
    assert len(set(hashes)) == len(hashes)
