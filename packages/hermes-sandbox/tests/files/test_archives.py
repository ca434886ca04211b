"""Packing and unpacking: what goes in comes out, and nothing comes out elsewhere."""

import asyncio
import contextlib
import io
import os
import resource
import socket
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hermes_sandbox.files import ArchiveError, Unpacker, UnsafeEntry, pack, packing, unpack
from hermes_sandbox.files.tree import TreeWriter
from hermes_sandbox.ownership import Owner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ODD_NAMES = [b"a b", b'it\'s "q"', b"new\nline", b"\xff\xfe raw", b"-dash", "ünï".encode(), b"x" * 200]


def names(folder: Path | str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def odd_tree(root: Path) -> None:
    root.mkdir()
    for name in ODD_NAMES:
        (root / os.fsdecode(name)).write_bytes(name)
    (root / "empty folder").mkdir()
    deep = root / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    (deep / "run.sh").write_bytes(b"#!/bin/sh\n")
    (deep / "run.sh").chmod(0o751)
    (root / "closed").mkdir()
    (root / "closed" / "in").write_bytes(b"")
    (root / "closed").chmod(0o500)
    (root / "link").symlink_to("a b")
    (deep / "up").symlink_to("../../a b")


def described(root: Path) -> dict[bytes, tuple[str, int, bytes]]:
    found = {}
    for path in root.rglob("*"):
        status = path.lstat()
        mode, content = stat.S_IMODE(status.st_mode), b""
        if stat.S_ISLNK(status.st_mode):
            mode, content = 0, os.fsencode(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        found[os.fsencode(path.relative_to(root))] = (stat.filemode(status.st_mode)[0], mode, content)
    return found


async def packed(local: Path) -> bytes:
    return b"".join([chunk async for chunk in pack(local)])


def archive(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info, data


async def unpack_bytes(data: bytes, target: Path, chunk: int = 1 << 16, **options: object) -> Unpacker:
    async def stream():
        for start in range(0, len(data), chunk):
            yield data[start : start + chunk]

    return await unpack(stream(), target, **options)  # type: ignore[arg-type]


async def test_a_tree_with_odd_names_modes_and_links_comes_back_the_same(tmp_path: Path) -> None:
    odd_tree(tmp_path / "from")
    await unpack(pack(tmp_path / "from"), tmp_path / "to")
    assert described(tmp_path / "to") == described(tmp_path / "from")


async def test_gnu_tar_reads_what_is_packed(tmp_path: Path) -> None:
    odd_tree(tmp_path / "from")
    (tmp_path / "to").mkdir()
    done = subprocess.run(
        ["tar", "-x", "-p", "-C", tmp_path / "to"], input=await packed(tmp_path / "from"), capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert described(tmp_path / "to") == described(tmp_path / "from")


@pytest.mark.parametrize("form", ["gnu", "pax", "ustar", "v7"])
@pytest.mark.parametrize("chunk", [1, 511, 1 << 20])
async def test_what_tar_packs_is_read_in_chunks_of_any_size(tmp_path: Path, form: str, chunk: int) -> None:
    odd_tree(tmp_path / "from")
    if form in ("ustar", "v7"):  # these cannot say long names
        subprocess.run(
            ["rm", "-rf", tmp_path / "from" / ("d" * 90), tmp_path / "from" / ("x" * 200)], check=True
        )
    data = subprocess.run(
        ["tar", "-c", f"--format={form}", "-C", tmp_path / "from", "."], capture_output=True, check=True
    ).stdout
    await unpack_bytes(data, tmp_path / "to", chunk)
    assert described(tmp_path / "to") == described(tmp_path / "from")


async def test_a_download_removes_what_killed_ones_left_beside_it(tmp_path: Path) -> None:
    """And nothing of the living, or of others."""
    alive = str(Owner.current()).replace("/", "~")
    dead = str(replace(Owner.current(), start="1")).replace("/", "~")
    for name in (f".unpack-{dead}-abc", f".unpack-{alive}-abc", ".unpack-strange"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"half of it")
    await unpack_bytes(archive(member("a", b"whole")), tmp_path / "x", single=True)
    assert (tmp_path / "x").read_bytes() == b"whole"
    assert names(tmp_path) == sorted([f".unpack-{alive}-abc", ".unpack-strange", "x"])


async def test_one_file_is_packed_under_its_name_and_lands_by_rename(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 1000)
    (tmp_path / "one").chmod(0o640)
    with tarfile.open(fileobj=io.BytesIO(await packed(tmp_path / "one"))) as tar:
        assert tar.getnames() == ["one"]
    await unpack(pack(tmp_path / "one", name="/abs/any"), tmp_path / "new" / "two", single=True)
    assert (tmp_path / "new" / "two").read_bytes() == b"x" * 1000
    assert stat.S_IMODE((tmp_path / "new" / "two").stat().st_mode) == 0o640
    assert names(tmp_path / "new") == ["two"]


async def test_a_single_file_that_is_cut_short_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "two").write_bytes(b"old")
    data = archive(member("one", b"n" * 5000))
    with pytest.raises(ArchiveError, match="cut short"):
        await unpack_bytes(data[:2048], tmp_path / "two", single=True)
    assert (tmp_path / "two").read_bytes() == b"old"
    assert names(tmp_path) == ["two"]


async def test_a_single_file_refuses_a_tree(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="expected one file"):
        await unpack_bytes(archive(member("a"), member("b")), tmp_path / "x", single=True)
    assert names(tmp_path) == []


HOSTILE = {
    "up": [member("../out", b"x")],
    "up inside": [member("a/../../out", b"x")],
    "absolute": [member("/tmp/out", b"x")],
    "link out": [member("l", kind=tarfile.SYMTYPE, link="../..")],
    "link absolute": [member("l", kind=tarfile.SYMTYPE, link="/etc/passwd")],
    "link by a longer way": [member("a/b/l", kind=tarfile.SYMTYPE, link="../../c/../../out")],
    "link through a link": [
        member("d/e/l", kind=tarfile.SYMTYPE, link="../.."),
        member("l", kind=tarfile.SYMTYPE, link="d/e/l/../secret"),
    ],
    "hard link out": [member("l", kind=tarfile.LNKTYPE, link="../secret")],
    "hard link absolute": [member("l", kind=tarfile.LNKTYPE, link="/etc/passwd")],
    "device": [member("d", kind=tarfile.CHRTYPE)],
    "block device": [member("d", kind=tarfile.BLKTYPE)],
    "pipe": [member("d", kind=tarfile.FIFOTYPE)],
    "through a link": [member("l", kind=tarfile.SYMTYPE, link="d"), member("l/x", b"x")],
    "the target itself": [member(".", b"x")],
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_entries_are_refused_and_nothing_lands_outside(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    target = tmp_path / "a" / "to"
    data = archive(member("good", b"1"), *HOSTILE[name], member("last", b"2"))
    with pytest.raises(UnsafeEntry):
        await unpack_bytes(data, target)
    unpacker = await unpack_bytes(data, target, unsafe="skip")
    assert len(unpacker.skipped) == 1
    assert (target / "good").read_bytes() == b"1"
    assert (target / "last").read_bytes() == b"2"
    assert names(tmp_path) == ["a", "secret"]
    assert names(tmp_path / "a") == ["to"]
    assert set(names(target)) <= {"good", "last", "l", "d"}


async def test_links_that_were_there_before_are_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "to" / "f").symlink_to(tmp_path / "victim")
    (tmp_path / "to" / "d").symlink_to(tmp_path / "outside")
    await unpack_bytes(archive(member("f", b"new")), tmp_path / "to")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert not (tmp_path / "to" / "f").is_symlink()
    with pytest.raises(UnsafeEntry, match="link or a file"):
        await unpack_bytes(archive(member("d/x", b"new")), tmp_path / "to")
    assert names(tmp_path / "outside") == []


async def test_setuid_bits_do_not_come_along(tmp_path: Path) -> None:
    info, data = member("s", b"x")
    info.mode = 0o6755
    await unpack_bytes(archive((info, data)), tmp_path / "to")
    assert stat.S_IMODE((tmp_path / "to" / "s").stat().st_mode) == 0o755


async def test_hard_links_inside_stay_links(tmp_path: Path) -> None:
    data = archive(member("a", b"x"), member("b/c", kind=tarfile.LNKTYPE, link="a"))
    await unpack_bytes(data, tmp_path / "to")
    assert (tmp_path / "to" / "a").samefile(tmp_path / "to" / "b" / "c")


async def test_limits_stop_an_archive_bomb(tmp_path: Path) -> None:
    data = archive(*[member(str(n), b"x" * 100) for n in range(20)])
    with pytest.raises(ArchiveError, match="more than 10 entries"):
        await unpack_bytes(data, tmp_path / "a", max_entries=10)
    with pytest.raises(ArchiveError, match="more than 500 bytes"):
        await unpack_bytes(data, tmp_path / "b", max_bytes=500)


async def test_garbage_and_huge_headers_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="not a tar archive"):
        await unpack_bytes(b"<html>" * 1000, tmp_path / "a")
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = tarfile.XHDTYPE, 1 << 33
    with pytest.raises(ArchiveError, match="extended header"):
        await unpack_bytes(huge.tobuf(tarfile.GNU_FORMAT), tmp_path / "b")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=2000), st.integers(0, 3000), st.integers(1, 700))
def test_damaged_archives_raise_only_archive_errors(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int, chunk: int
) -> None:
    data = bytearray(archive(member("é" * 60, b"y" * 700), member("d", kind=tarfile.DIRTYPE)))
    data[at : at + len(junk)] = junk
    around = tmp_path_factory.mktemp("fuzz")
    # Damage can also make a name that must be refused.
    with contextlib.suppress(ArchiveError, UnsafeEntry, OSError):
        asyncio.run(unpack_bytes(bytes(data), around / "target", chunk, max_bytes=1 << 20))
    assert {path.name for path in around.iterdir()} <= {"target"}, "something was written beside the target"


async def test_sockets_and_pipes_are_left_out_of_a_pack(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "kept").write_bytes(b"1")
    os.mkfifo(tmp_path / "from" / "pipe")
    monkeypatch.chdir(tmp_path / "from")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("sock")
        await unpack(pack(tmp_path / "from"), tmp_path / "to")
    assert names(tmp_path / "to") == ["kept"]
    assert caplog.text.count("left out of the archive") == 2


async def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        await packed(tmp_path / "nothing")


async def test_a_large_file_passes_in_bounded_memory_without_holding_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop gets on while anything is read or written."""
    with (tmp_path / "big").open("wb") as file:
        file.truncate(256 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loop, pieces, write = asyncio.get_running_loop(), packing._file, TreeWriter.content

    def let_the_loop_turn() -> None:
        turned = threading.Event()
        loop.call_soon_threadsafe(turned.set)
        assert turned.wait(60), "the loop is held"

    def read_slowly(path: str, header: tarfile.TarInfo) -> Iterator[bytes]:
        for piece in pieces(path, header):
            let_the_loop_turn()
            yield piece

    def write_slowly(tree: TreeWriter, data: memoryview) -> None:
        let_the_loop_turn()
        write(tree, data)

    monkeypatch.setattr(packing, "_file", read_slowly)
    monkeypatch.setattr(TreeWriter, "content", write_slowly)
    async with Unpacker(tmp_path / "out", max_bytes=1 << 33) as unpacker:
        async for chunk in pack(tmp_path / "big"):
            assert len(chunk) <= 2 << 20
            if unpacker.written == 0:
                await unpacker.feed(chunk)
        # the rest was only packed: what is fed is not whole
        with pytest.raises(ArchiveError, match="cut short"):
            await unpacker.finish()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 64, f"{grown:.0f} MiB more memory for a file of 256 MiB"


async def test_cancelling_a_transfer_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(8 << 20))

    async def transfer() -> None:
        async with Unpacker(tmp_path / "out") as unpacker:
            async for chunk in pack(tmp_path / "big"):
                await unpacker.feed(chunk)
                await asyncio.sleep(0.005)

    def open_here() -> list[str]:
        found: list[str] = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(descriptor.readlink()))
        return [path for path in found if Path(path).is_relative_to(tmp_path)]

    for delay in range(10):
        task = asyncio.create_task(transfer())
        await asyncio.sleep(delay / 500)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(60):  # a thread that reads closes its file when it has read
        while open_here():
            await asyncio.sleep(0.02)


def test_importing_the_archives_is_light() -> None:
    code = "import sys, hermes_sandbox.files; print('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
