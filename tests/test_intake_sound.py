"""Sound files of every kind people have, and of kinds nobody should have."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex.errors import InputError
from duplex.intake.sound import Pcm, Sound, open_sound
from duplex.riff import UNKNOWN_SIZE
from duplex.wavfile import wav_header
from stimuli import RATE, pcm, save, speechlike, voiced

LEFT, RIGHT = speechlike(1.5, 1), voiced(1.5)
WANTED = np.stack([pcm(LEFT), pcm(RIGHT)], axis=1)


def read(path: Path, block: int = 7_001) -> tuple[Sound, Pcm]:
    with open_sound(path) as sound:
        parts = list(sound.blocks(block))
    assert all(0 < len(part) <= block for part in parts)
    whole = np.concatenate([np.zeros((0, sound.channels), np.int16), *parts])
    assert len(whole) == sound.frames
    return sound, whole


EXACT = [
    ("a.wav", "WAV", "PCM_16"),
    ("a.wav", "WAV", "PCM_24"),
    ("a.wav", "WAV", "PCM_32"),
    ("a.wav", "WAV", "FLOAT"),
    ("a.wav", "WAV", "DOUBLE"),
    ("a.wav", "WAVEX", "PCM_16"),
    ("a.wav", "WAVEX", "PCM_24"),
    ("a.wav", "WAVEX", "FLOAT"),
    ("a.wav", "RF64", "PCM_16"),
    ("a.w64", "W64", "PCM_24"),
    ("a.aiff", "AIFF", "PCM_16"),
    ("a.flac", "FLAC", "PCM_16"),
    ("a.flac", "FLAC", "PCM_24"),
]


@pytest.mark.parametrize(("name", "container", "subtype"), EXACT)
def test_lossless_files_give_their_samples(
    tmp_path: Path, name: str, container: str, subtype: str
) -> None:
    written = WANTED / 32768 if subtype in ("FLOAT", "DOUBLE") else WANTED
    soundfile.write(tmp_path / name, written, RATE, format=container, subtype=subtype)
    sound, got = read(tmp_path / name)
    assert (sound.rate_hz, sound.channels, sound.warnings) == (RATE, 2, [])
    assert np.array_equal(got, WANTED)


@pytest.mark.parametrize(
    ("name", "subtype", "error_db"),
    [
        ("a.wav", "PCM_U8", -18),
        ("a.wav", "ULAW", -30),
        ("a.wav", "ALAW", -30),
        ("a.au", "ULAW", -30),
    ],
)
def test_coarse_formats_keep_the_level(
    tmp_path: Path, name: str, subtype: str, error_db: float
) -> None:
    soundfile.write(tmp_path / name, WANTED, RATE, subtype=subtype)
    _, got = read(tmp_path / name)
    loud, off = WANTED[:, 1].astype(float), got[:, 1].astype(float) - WANTED[:, 1]
    assert 10 * np.log10(np.mean(off**2) / np.mean(loud**2)) < error_db
    assert abs(20 * np.log10(np.std(got[:, 1]) / np.std(loud))) < 0.1


@pytest.mark.parametrize(
    ("name", "subtype"), [("a.ogg", "VORBIS"), ("a.opus", "OPUS"), ("a.mp3", "MPEG_LAYER_III")]
)
def test_lossy_files_keep_length_level_and_place(tmp_path: Path, name: str, subtype: str) -> None:
    container = "MP3" if subtype.startswith("MPEG") else "OGG"
    soundfile.write(tmp_path / name, WANTED / 32768, RATE, format=container, subtype=subtype)
    _, got = read(tmp_path / name)
    assert len(got) == len(WANTED)
    a, b = got[:, 0].astype(float), WANTED[:, 0].astype(float)
    fits = np.correlate(a[7_000:13_000], b[8_000:12_000], "valid")
    assert abs(int(fits.argmax()) - 1_000) <= 1
    assert abs(20 * np.log10(a.std() / b.std())) < 1


def header(data: int | None, riff: int | None = None, *, channels: int = 1) -> bytes:
    made = bytearray(wav_header(24_000, RATE, channels))
    if data is not None:
        made[40:44] = struct.pack("<I", data)
    if riff is not None:
        made[4:8] = struct.pack("<I", riff)
    return bytes(made)


BODY = pcm(speechlike(1.0, 3)).astype("<i2").tobytes()


@pytest.mark.parametrize("declared", [UNKNOWN_SIZE, 0, len(BODY) + 16])
def test_a_wrong_size_gives_the_audio_that_is_there(tmp_path: Path, declared: int) -> None:
    path = tmp_path / "streamed.wav"
    path.write_bytes(header(declared, UNKNOWN_SIZE) + BODY)
    sound, got = read(path)
    assert got[:, 0].astype("<i2").tobytes() == BODY
    assert "header declares" in sound.warnings[0]


def test_a_wrong_riff_size_alone_is_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(header(None, 7) + BODY)
    sound, got = read(path)
    assert (len(got), sound.warnings) == (24_000, [])


def test_two_files_in_one_give_the_first_without_a_click(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes((header(None) + BODY) * 2)
    _, got = read(path)
    assert got[:, 0].astype("<i2").tobytes() == BODY


@pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT", "ULAW", "ALAW", "PCM_32"])
@pytest.mark.parametrize("declared", [UNKNOWN_SIZE, 0])
def test_streamed_headers_of_other_formats_are_mended(
    tmp_path: Path, subtype: str, declared: int
) -> None:
    whole, cut = tmp_path / "whole.wav", tmp_path / "streamed.wav"
    soundfile.write(whole, WANTED / 32768, RATE, subtype=subtype)
    data = bytearray(whole.read_bytes())
    at = data.index(b"data") + 4
    data[at : at + 4] = struct.pack("<I", declared)
    end = at + 4 + len(WANTED) * 2 * {"PCM_24": 3, "FLOAT": 4, "PCM_32": 4}.get(subtype, 1)
    cut.write_bytes(bytes(data[:end]))
    sound, got = read(cut)
    assert np.array_equal(got, read(whole)[1])
    assert sound.warnings


@pytest.mark.parametrize("length", [13, 20, 30, 36])
def test_a_cut_header_is_refused_with_its_reason(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.wav"
    path.write_bytes(header(None)[:length])
    with pytest.raises(InputError, match=r"header ends|no data chunk"):
        open_sound(path)


@pytest.mark.parametrize("content", [b"", b"RIFF", b"hello, this is no sound at all", bytes(5_000)])
def test_what_is_no_sound_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"too few|no sound file"):
        open_sound(path)


def test_an_unknown_format_comes_with_its_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.m4a"
    path.write_bytes(b"\0\0\0\x20ftypM4A " + bytes(4_000))
    with pytest.raises(InputError, match="convert it first"):
        open_sound(path)


def test_folders_pipes_and_missing_files_are_told_apart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        open_sound(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        open_sound(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        open_sound(tmp_path / "nothing.wav")


def test_a_rate_too_low_for_speech_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "low.wav", LEFT, RIGHT, rate=6_000)
    with pytest.raises(InputError, match="6000 Hz, wanted at least 8000"):
        open_sound(tmp_path / "low.wav")


@pytest.mark.parametrize("subtype", ["FLOAT", "DOUBLE"])
def test_nan_and_infinite_samples_become_silence_and_are_counted(
    tmp_path: Path, subtype: str
) -> None:
    broken = np.stack([LEFT, RIGHT], axis=1)
    broken[100, 0], broken[200, 1], broken[9_000, 0] = np.nan, np.inf, -np.inf
    soundfile.write(tmp_path / "a.wav", broken, RATE, subtype=subtype)
    sound, got = read(tmp_path / "a.wav")
    assert sound.repairs.invalid == 3
    wanted = WANTED.copy()
    wanted[100, 0] = wanted[200, 1] = wanted[9_000, 0] = 0
    assert np.abs(got.astype(int) - wanted).max() <= 1
    assert not got[[100, 9_000], 0].any()


def test_samples_beyond_full_scale_are_held_and_counted(tmp_path: Path) -> None:
    loud = np.stack([LEFT, RIGHT], axis=1)
    loud[500:510, 0] = 1.7
    loud[600, 1] = -3.5
    soundfile.write(tmp_path / "a.wav", loud, RATE, subtype="FLOAT")
    sound, got = read(tmp_path / "a.wav")
    assert (sound.repairs.beyond, sound.repairs.invalid) == (11, 0)
    assert sound.repairs.peak == pytest.approx(3.5)
    assert set(got[500:510, 0].tolist()) == {32767}
    assert got[600, 1] == -32768


def test_a_cut_flac_gives_what_can_be_decoded_and_says_where_it_broke_off(tmp_path: Path) -> None:
    long = np.tile(WANTED, (4, 1))
    soundfile.write(tmp_path / "whole.flac", long, RATE)
    data = (tmp_path / "whole.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) * 6 // 10])
    sound, got = read(tmp_path / "cut.flac", 4_000)
    assert 0.2 * len(long) < len(got) < 0.62 * len(long)
    assert np.array_equal(got, long[: len(got)])
    assert "broke off after" in sound.warnings[0]


def test_a_cut_mp3_gives_what_is_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    long = np.tile(WANTED, (4, 1))
    soundfile.write(tmp_path / "whole.mp3", long, RATE, format="MP3")
    data = (tmp_path / "whole.mp3").read_bytes()
    (tmp_path / "cut.mp3").write_bytes(data[: len(data) // 2])
    sound, got = read(tmp_path / "cut.mp3")
    assert 0.3 * len(long) < len(got) < 0.7 * len(long)
    assert "promises 6.000 s" in sound.warnings[0]


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_blocks_of_any_size_hold_the_same_samples(tmp_path: Path, name: str) -> None:
    soundfile.write(tmp_path / name, WANTED, RATE)
    whole = read(tmp_path / name, 1 << 20)[1]
    assert np.array_equal(read(tmp_path / name, 333)[1], whole)
