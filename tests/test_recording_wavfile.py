"""WAV files: what a writer leaves behind, and what a reader makes of bad ones."""

from __future__ import annotations

import os
import signal
import stat
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex.errors import InputError
from duplex.riff import UNKNOWN_SIZE
from duplex.wavfile import (
    HEADER_BYTES,
    WavWriter,
    WriteFailed,
    probe_wav,
    read_wav,
    wav_header,
    write_wav,
)

RATE = 24_000
AUDIO = np.arange(24_000, dtype=np.int16)  # 48 000 bytes
BODY = AUDIO.astype("<i2").tobytes()


def riff(body: bytes, *, data: int | None = None, size: int | None = None) -> bytes:
    header = bytearray(wav_header(len(body) // 2, RATE, 1))
    if data is not None:
        header[40:44] = struct.pack("<I", data)
    if size is not None:
        header[4:8] = struct.pack("<I", size)
    return bytes(header) + body


def put(path: Path, data: bytes) -> Path:
    file = path / "in.wav"
    file.write_bytes(data)
    return file


# -- writing --------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
def test_what_is_written_reads_back_here_and_in_libsndfile(tmp_path: Path, channels: int) -> None:
    rng = np.random.default_rng(1)
    parts = [rng.integers(-32768, 32768, (n, channels), dtype=np.int16) for n in (1, 480, 70_000)]
    path = tmp_path / "out.wav"
    with WavWriter(path, RATE, channels) as writer:
        for part in parts:
            writer.append(*part.T)
        assert writer.frames == 70_481
    wanted = np.concatenate(parts)
    wav = read_wav(path)
    assert (wav.rate_hz, wav.channels, wav.warnings) == (RATE, channels, ())
    assert np.array_equal(wav.samples, wanted)
    samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    assert rate == RATE
    assert np.array_equal(samples, wanted)
    info = soundfile.info(path)
    assert (info.format, info.subtype) == ("WAV", "PCM_16")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_chunking_does_not_change_the_bytes(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.wav", tmp_path / "parts.wav"
    write_wav(whole, AUDIO, RATE)
    with WavWriter(parts, RATE) as writer:
        for at in range(0, len(AUDIO), 137):
            writer.append(AUDIO[at : at + 137])
            if at % 5 == 0:
                writer.flush()
    assert whole.read_bytes() == parts.read_bytes()
    assert whole.read_bytes() == riff(BODY)


def test_after_a_flush_the_header_says_what_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    writer = WavWriter(path, RATE)
    assert read_wav(path).frames == 0
    writer.append(AUDIO)
    writer.flush()
    data = path.read_bytes()
    assert data == riff(BODY)
    writer.append(AUDIO)
    writer.abandon()
    assert read_wav(path).frames == len(AUDIO)


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    path = put(tmp_path, b"precious")
    with pytest.raises(InputError, match="exists already"):
        WavWriter(path, RATE)
    assert path.read_bytes() == b"precious"


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    writer = WavWriter(tmp_path / "out.wav", RATE)
    writer.append(AUDIO)
    writer.close()
    writer.close()
    assert read_wav(tmp_path / "out.wav").frames == len(AUDIO)


def test_sizes_beyond_four_gigabytes_say_unknown() -> None:
    header = wav_header(1 << 31, 48_000, 2)
    assert struct.unpack("<I", header[4:8]) == (UNKNOWN_SIZE,)
    assert struct.unpack("<I", header[40:44]) == (UNKNOWN_SIZE,)


FULL = """
import resource, signal, sys
import numpy as np
from duplex.wavfile import WavWriter, WriteFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, 100_001))
writer = WavWriter(sys.argv[1], 24_000, 2)
half = np.arange(20_000, dtype=np.int16)
writer.append(half, half)
writer.flush()
try:
    writer.append(half, half)
    writer.flush()
except WriteFailed as error:
    print(error)
    writer.abandon()
    sys.exit(3)
"""


def test_a_file_written_at_once_is_whole_or_not_there(tmp_path: Path) -> None:
    limit = "import resource, signal, sys, numpy as np; from duplex.wavfile import *; "
    limit += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, 100_001)); "
    limit += "write_wav(sys.argv[1], np.zeros(80_000, np.int16), 24_000)"
    path = tmp_path / "full.wav"
    done = subprocess.run([sys.executable, "-c", limit, path], capture_output=True, check=False)
    assert b"WriteFailed" in done.stderr
    assert not path.exists()


def test_a_full_disk_keeps_whole_frames_and_a_true_header(tmp_path: Path) -> None:
    path = tmp_path / "full.wav"
    done = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, check=False)
    assert done.returncode == 3, done.stderr
    assert b"full.wav cannot be written" in done.stdout
    wav = read_wav(path)
    assert wav.warnings == ()
    assert wav.frames == (100_001 - HEADER_BYTES) // 4
    assert np.array_equal(wav.channel(1)[:20_000], np.arange(20_000))
    assert (path.stat().st_size - HEADER_BYTES) % 4 == 0


def test_no_space_left_is_said_in_words(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    path = tmp_path / "full.wav"
    writer = WavWriter(path, RATE)
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, writer._fd)
    os.close(full)
    writer.append(AUDIO)
    with pytest.raises(WriteFailed, match=r"full\.wav cannot be written: the disk is full"):
        writer.flush()
    writer.abandon()


KILLED = """
import os, signal, sys
import numpy as np
from duplex.wavfile import WavWriter
writer = WavWriter(sys.argv[1], 24_000)
writer.append(np.arange(24_000, dtype=np.int16))
writer.flush()
writer.append(np.zeros(12_000, np.int16))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_costs_only_what_was_not_flushed(tmp_path: Path) -> None:
    path = tmp_path / "killed.wav"
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert np.array_equal(read_wav(path).channel(0), AUDIO)
    assert soundfile.info(path).frames == 24_000


# -- reading --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (UNKNOWN_SIZE, UNKNOWN_SIZE),
        (UNKNOWN_SIZE, None),
        (0, 0),
        (0, None),
        (48_016, None),
        (0xFFFFFFF0, None),
        (0x7FFFFFFF, 0),
    ],
)
def test_wrong_data_sizes_give_the_bytes_that_exist(
    tmp_path: Path, data: int, size: int | None
) -> None:
    wav = read_wav(put(tmp_path, riff(BODY, data=data, size=size)))
    assert np.array_equal(wav.channel(0), AUDIO)
    assert wav.rate_hz == RATE
    assert len(wav.warnings) == 1
    assert "in.wav" in wav.warnings[0]
    assert "48000 bytes" in wav.warnings[0]


@pytest.mark.parametrize("size", [0, 7, UNKNOWN_SIZE])
def test_a_wrong_outer_size_does_not_matter(tmp_path: Path, size: int) -> None:
    wav = read_wav(put(tmp_path, riff(BODY, size=size)))
    assert np.array_equal(wav.channel(0), AUDIO)
    assert wav.warnings == ()


@pytest.mark.parametrize("declared", [48_000, UNKNOWN_SIZE, 0, 48_000 + 16])
def test_of_two_files_in_one_the_first_is_read_without_a_click(
    tmp_path: Path, declared: int
) -> None:
    wav = read_wav(put(tmp_path, riff(BODY, data=declared) + riff(BODY[::-1])))
    assert np.array_equal(wav.channel(0), AUDIO)


def test_the_seam_of_two_files_is_found_across_read_blocks(tmp_path: Path) -> None:
    body = bytes((1 << 20) - 10)
    wav = read_wav(put(tmp_path, riff(body, data=UNKNOWN_SIZE) + riff(BODY)))
    assert wav.frames == len(body) // 2


@pytest.mark.parametrize("size", [0, 3, 11, 12, 19, 20, 30, 35, 36, 43])
def test_a_cut_header_is_a_clean_error(tmp_path: Path, size: int) -> None:
    with pytest.raises(InputError, match=r"in\.wav"):
        read_wav(put(tmp_path, riff(BODY)[:size]))


def test_a_header_without_audio_is_empty_audio(tmp_path: Path) -> None:
    assert read_wav(put(tmp_path, riff(b""))).samples.shape == (0, 1)


def test_an_empty_data_chunk_before_other_chunks_is_empty_audio(tmp_path: Path) -> None:
    trailer = b"LIST" + struct.pack("<I", 4) + b"INFO"
    wav = read_wav(put(tmp_path, riff(b"") + trailer))
    assert (wav.frames, wav.warnings) == (0, ())


def test_chunks_before_the_audio_are_skipped(tmp_path: Path) -> None:
    data = riff(BODY)
    odd = b"junk" + struct.pack("<I", 3) + b"abc\0"
    wav = read_wav(put(tmp_path, data[:12] + odd + data[12:36] + odd + data[36:]))
    assert np.array_equal(wav.channel(0), AUDIO)


def test_bytes_after_the_last_whole_frame_are_dropped_and_said(tmp_path: Path) -> None:
    wav = read_wav(put(tmp_path, riff(BODY + b"\x01", data=48_001)))
    assert wav.frames == 24_000
    assert "dropped 1 byte after the last whole frame" in wav.warnings[0]


@pytest.mark.parametrize(("field", "said"), [(22, "0 channels"), (24, "a rate of 0 Hz")])
def test_impossible_formats_are_refused(tmp_path: Path, field: int, said: str) -> None:
    data = bytearray(riff(BODY))
    data[field : field + (2 if field == 22 else 4)] = bytes(2 if field == 22 else 4)
    with pytest.raises(InputError, match=said):
        read_wav(put(tmp_path, bytes(data)))


def test_the_declared_size_is_never_allocated(tmp_path: Path) -> None:
    path = put(tmp_path, riff(BODY, data=UNKNOWN_SIZE))
    tracemalloc.start()
    read_wav(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


@pytest.mark.parametrize(
    ("container", "subtype", "tolerance"),
    [
        ("WAV", "PCM_24", 1),
        ("WAV", "PCM_32", 1),
        ("WAV", "FLOAT", 1),
        ("WAV", "DOUBLE", 1),
        ("WAV", "PCM_U8", 256),
        ("WAV", "ULAW", 1100),
        ("WAVEX", "PCM_16", 0),
        ("FLAC", "PCM_16", 0),
        ("AIFF", "PCM_16", 0),
        ("RF64", "PCM_16", 0),
    ],
)
def test_other_formats_come_as_sixteen_bits(
    tmp_path: Path, container: str, subtype: str, tolerance: int
) -> None:
    path = tmp_path / "in.snd"
    stereo = np.stack([AUDIO, -AUDIO], axis=1)
    soundfile.write(path, stereo / 32768, 16_000, format=container, subtype=subtype)
    wav = read_wav(path)
    assert (wav.rate_hz, wav.channels) == (16_000, 2)
    assert np.abs(wav.samples.astype(int) - stereo).max() <= tolerance
    assert probe_wav(path)[:2] == (16_000, 24_000)


def test_floats_beyond_full_scale_are_clipped(tmp_path: Path) -> None:
    path = tmp_path / "hot.wav"
    hot = np.array([2.0, -2.0, 0.5, np.nan, np.inf])
    soundfile.write(path, hot, 8000, subtype="FLOAT")
    assert read_wav(path).channel(0).tolist() == [32767, -32768, 16384, 0, 32767]


def test_a_wide_format_with_a_streamed_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "in.wav"
    soundfile.write(path, AUDIO, RATE, subtype="PCM_24", format="WAV")
    data = bytearray(path.read_bytes())
    at = data.index(b"data") + 4
    data[at : at + 4] = struct.pack("<I", UNKNOWN_SIZE)
    path.write_bytes(data)
    wav = read_wav(path)
    assert np.array_equal(wav.channel(0), AUDIO)
    assert wav.warnings


@pytest.mark.parametrize("data", [b"", b"RIFF", b"not a sound file at all", b"\0" * 64])
def test_what_is_no_sound_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match=r"in\.wav"):
        read_wav(put(tmp_path, data))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_wav(tmp_path / "none.wav")
    with pytest.raises(InputError, match="is no regular file but a folder"):
        read_wav(tmp_path)


@pytest.mark.parametrize("data", [48_000, UNKNOWN_SIZE, 0, 48_016])
def test_a_probe_agrees_with_a_read(tmp_path: Path, data: int) -> None:
    path = put(tmp_path, riff(BODY, data=data))
    wav = read_wav(path)
    assert probe_wav(path) == (wav.rate_hz, wav.frames, wav.warnings)
