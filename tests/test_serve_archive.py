"""Archives of source: what is read of them, and every way in which one can be hostile."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duplex.errors import InputError
from duplex.serve import archive, source
from duplex.serve.archive import Source, read_source

Files = Mapping[str, str | bytes]


def packed(files: Files, *more: tarfile.TarInfo, kind: int = tarfile.PAX_FORMAT) -> bytes:
    """A .tar.gz of these files, then of bare entries."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=kind) as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for info in more:
            tar.addfile(info)
    return out.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def read(tmp_path: Path, data: bytes, wanted: Callable[[str], bool] = lambda _: True) -> Source:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(data)
    return read_source(path, wanted)


def header(name: bytes = b"a", size: bytes = b"00000000000", kind: bytes = b"0") -> bytes:
    """A header that adds up, whatever it says."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124 : 124 + len(size)] = size
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_files_are_read_as_every_writer_of_archives_packs_them(tmp_path: Path, kind: int) -> None:
    deep = "/".join(["folder_of_a_long_name"] * 8)
    files: Files = {"./agent.py": "print('é')", f"{deep}/prompt.md": "Be kind.", "b.bin": b"\0\xff"}
    found = read(tmp_path, packed(files, entry("empty", tarfile.DIRTYPE), kind=kind))
    assert found.texts == {"agent.py": "print('é')", f"{deep}/prompt.md": "Be kind."}
    assert found.files == 3


def test_an_archive_of_the_tar_program_with_links_is_read_without_them(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (project / "agent.py").write_text("x = 1\n")
    (project / "out").symlink_to("/etc")
    os.link(project / "agent.py", project / "zz_again.py")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(project, arcname="project")
    found = read(tmp_path, out.getvalue())
    assert found.texts == {"project/agent.py": "x = 1\n"}


def test_an_archive_joined_of_two_is_read_to_its_end(tmp_path: Path) -> None:
    whole = gzip.decompress(packed({"a.py": "1", "b.py": "2"}))
    found = read(tmp_path, gzip.compress(whole[:700]) + gzip.compress(whole[700:]))
    assert found.texts == {"a.py": "1", "b.py": "2"}
    many = b"".join(gzip.compress(whole[at : at + 8]) for at in range(0, 8 * 80, 8))
    with pytest.raises(InputError, match="joined"):
        read(tmp_path, many)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up.py", "a/../../up.py", "a\\..\\up.py", "C:/up.py", "a/.."]
)
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="leads out"):
        read(tmp_path, packed({"a.py": "1"}, entry(name)))
    long = packed({"a.py": "1", f"{name}/{'x' * 120}": "2"})
    with pytest.raises(InputError, match="leads out"):
        read(tmp_path, long)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    data = packed(
        {}, entry("agent.py"), entry("door", tarfile.SYMTYPE, str(outside)),
        entry("hard", tarfile.LNKTYPE, "/etc/passwd"),
    )  # fmt: skip
    more = gzip.compress(gzip.decompress(data)[: 3 * 512] + header(b"door/in.py", b"00000000001")
                         + b"x".ljust(512, b"\0") + bytes(1024))  # fmt: skip
    found = read(tmp_path, more)
    assert set(found.texts) == {"agent.py", "door/in.py"}
    assert list(outside.iterdir()) == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.tar.gz", "outside"]


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"S", b"Z"])
def test_what_is_neither_file_folder_nor_link_is_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(InputError, match="neither"):
        read(tmp_path, gzip.compress(header(b"dev", kind=kind) + bytes(1024)))


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    info = entry("big.py")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}
    with pytest.raises(InputError, match=r"GNU\.sparse"):
        read(tmp_path, packed({}, info))


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gigabyte of zeros: what was unpacked when it was refused stays within the bound."""
    unpacked = 0
    piece = archive._Tape._bounded

    def counted(tape: archive._Tape) -> None:
        nonlocal unpacked
        unpacked = tape._unpacked
        piece(tape)

    monkeypatch.setattr(archive._Tape, "_bounded", counted)
    packer = zlib.compressobj(wbits=31)
    size = 255 << 20
    parts = [packer.compress(header(b"zeros", b"%011o" % size))]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(255)]
    parts.append(packer.flush())
    with pytest.raises(InputError, match="times its size"):
        read(tmp_path, b"".join(parts))
    assert unpacked <= archive.RATIO_FROM_BYTES + archive.RATIO * (128 << 10)


def test_more_than_may_be_unpacked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "UNPACKED_BYTES", 100_000)
    with pytest.raises(InputError, match="entry of more"):
        read(tmp_path, packed({"a.py": os.urandom(200_000)}))
    with pytest.raises(InputError, match="unpacks to more"):
        read(tmp_path, packed({f"{n}.py": os.urandom(60_000) for n in range(3)}))


def test_too_many_entries_depth_and_names_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_ENTRIES", 10)
    with pytest.raises(InputError, match="more than 10 entries"):
        read(tmp_path, packed({f"{n}.py": "1" for n in range(12)}))
    with pytest.raises(InputError, match="nested deeper"):
        read(tmp_path, packed({"/".join("a" * 40): "1"}))
    with pytest.raises(InputError, match="name of more"):
        read(tmp_path, packed({"n" * 2000: "1"}))


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_huge_header_is_refused_before_it_is_read(tmp_path: Path, kind: bytes) -> None:
    bomb = gzip.compress(header(b"h", b"%011o" % (200 << 20), kind) + bytes(1 << 20))
    with pytest.raises(InputError, match="extended header"):
        read(tmp_path, bomb)


@pytest.mark.parametrize(
    "records",
    [b"99999 path=a\n", b"0 path=a\n", b"x path=a\n", b"-5 path=a\n", b"12 size=abc\n", b"9"],
)
def test_an_extended_header_that_lies_is_refused(tmp_path: Path, records: bytes) -> None:
    data = header(b"h", b"%011o" % len(records), b"x") + records.ljust(512, b"\0")
    with pytest.raises(InputError):
        read(tmp_path, gzip.compress(data + header(b"a.py") + bytes(1024)))


def test_a_header_for_all_entries_may_only_comment(tmp_path: Path) -> None:
    for record, good in ((b"22 comment=0123456789\n", True), (b"10 path=ab\n", False)):
        data = header(b"g", b"%011o" % len(record), b"g") + record.ljust(512, b"\0")
        whole = gzip.compress(data + header(b"a.py") + bytes(1024))
        if good:
            assert set(read(tmp_path, whole).texts) == {"a.py"}
        else:
            with pytest.raises(InputError, match="path"):
                read(tmp_path, whole)


@pytest.mark.parametrize("size", [b"\xff" * 12, b"\x80" + b"\x7f" * 11, b"-0000000001", b"9"])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: bytes) -> None:
    with pytest.raises(InputError, match=r"entry of more|no number"):
        read(tmp_path, gzip.compress(header(b"a.py", size) + bytes(1024)))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    good = packed({"a.py": "x" * 4000})
    for data in (b"", b"PK\x03\x04zip", b"plain text", good[:20], good[:-40], gzip.compress(b"x")):
        with pytest.raises(InputError, match=r"cut off|no \.tar\.gz|add up"):
            read(tmp_path, data)
    with pytest.raises(InputError, match="no file"):
        read(tmp_path, packed({}, entry("folder", tarfile.DIRTYPE)))


def test_an_archive_in_an_archive_stays_bytes(tmp_path: Path) -> None:
    inner = packed({"inner.py": "x"})
    found = read(tmp_path, packed({"a.py": "1", "inner.tar.gz": inner}))
    assert set(found.texts) == {"a.py"}


@given(st.binary(max_size=600), st.integers(0, 600))
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_strange_bytes_are_read_or_refused_and_nothing_else(
    tmp_path: Path, noise: bytes, at: int
) -> None:
    whole = bytearray(gzip.decompress(packed({"a.py": "x", "b.py": "y"})))
    whole[at : at + len(noise)] = noise
    with suppress(InputError):
        found = read(tmp_path, gzip.compress(bytes(whole)))
        assert all(".." not in path.split("/") and path[0] != "/" for path in found.texts)


def test_what_is_shown_is_source_and_no_secret() -> None:
    assert source.wanted("src/agent.py")
    for path in (
        ".env", "a/.git/config.json", "node_modules/x/y.js", "venv/lib/z.py", "id_rsa.txt",
        "secrets.yaml", "logo.png", "package-lock.json", "app/__pycache__/a.py",
    ):  # fmt: skip
        assert not source.wanted(path), path
    texts = {
        "proj/tests/test_agent.py": "t",
        "proj/data.json": "{}",
        "proj/other.py": "KEY = 'sk-abcdefghijklmnopqrstuv'",
        "proj/README.md": "read <|me|>",
        "proj/agent.py": "main",
    }
    assert source.entrypoint_of(texts, "./agent.py") == "proj/agent.py"
    told = source.shown(texts, "proj/agent.py")
    places = [told.index(name) for name in
              ("proj/agent.py\",", "README", "other.py", "data.json", "test_agent")]  # fmt: skip
    assert places == sorted(places)
    assert "sk-abcdef" not in told
    assert "<|me|>" not in told
    with pytest.raises(InputError, match="codeEntrypoint"):
        source.entrypoint_of(texts, "nothing.py")
    with pytest.raises(InputError, match="codeEntrypoint"):
        source.entrypoint_of(texts, "")


def test_source_that_is_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SHOWN_CHARS", 1000)
    told = source.shown({"a.py": "a" * 700, "b.py": "b" * 700, "c.py": "c"}, "a.py")
    assert told.count("a" * 700) == 1
    assert told.count("b") < 320
    assert '"cut": true' in told
    assert "c.py" not in told
