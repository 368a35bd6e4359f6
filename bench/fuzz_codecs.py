"""Coverage-guided fuzzing of every codec with atheris: an hour once, not in the suite.

    python -m venv /tmp/fuzz && /tmp/fuzz/bin/pip install atheris numpy pydantic
    PYTHONPATH=src:tests /tmp/fuzz/bin/python bench/fuzz_codecs.py /tmp/corpus -max_total_time=3600

The first byte chooses the codec, the rest is what a peer sends (``tests/codec_targets.py``).
``/tmp/corpus`` is filled with good messages when it is empty. What follows the folder goes
to libFuzzer; ``-rss_limit_mb=1024 -malloc_limit_mb=256`` makes memory a finding. A crash
leaves its input in a file ``crash-…``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["duplex.protocols"]):
    import codec_seeds
    import codec_targets


def one(data: bytes) -> None:
    if data:
        codec_targets.TARGETS[data[0] % len(codec_targets.TARGETS)](data[1:])


def filled(corpus: Path) -> None:
    """Give an empty corpus every good message, for every codec."""
    corpus.mkdir(parents=True, exist_ok=True)
    if any(corpus.iterdir()):
        return
    good = [message.encode() for message in codec_seeds.messages()]
    for index in range(len(codec_targets.TARGETS)):
        for number, message in enumerate([*good, b"\n".join(good[:12])]):
            (corpus / f"good-{index:02}-{number:03}").write_bytes(bytes([index]) + message)


def dictionary() -> Path:
    """The words of the protocols as libFuzzer reads them."""
    path = Path(tempfile.mkdtemp()) / "words.dict"
    escaped = (word.encode().hex(" ").split() for word in codec_seeds.words())
    lines = ['"' + "".join(f"\\x{byte}" for byte in word) + '"' for word in escaped]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    filled(Path(folder))
    flags = ["-rss_limit_mb=1024", "-malloc_limit_mb=256", "-timeout=20", f"-dict={dictionary()}"]
    atheris.Setup([sys.argv[0], folder, *flags, *rest], one)
    atheris.Fuzz()
