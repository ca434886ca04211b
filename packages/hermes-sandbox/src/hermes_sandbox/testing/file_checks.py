"""Files: single ones by their bytes, trees by archives."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from hermes_sandbox import Sandbox
from hermes_sandbox.errors import UnsafeArchive
from hermes_sandbox.testing.base import Checks

ODD_NAMES = ["with space", "new\nline", "-dash", "quote'\"s", "ünï✓", "$HOME", "back\\slash", "*", ".hidden"]


def make_tree(root: Path) -> None:
    """A tree with everything that transfers must keep."""
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty folder").mkdir()
    for name in ODD_NAMES:
        (root / name).write_bytes(name.encode() + b"\0\xff")
    Path(os.fsdecode(os.fsencode(root) + b"/raw\xff\xfename")).write_bytes(b"raw")
    (root / "deep" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "deep" / "run.sh").chmod(0o755)
    (root / "deep" / "private").write_bytes(b"x" * 100_000)
    (root / "deep" / "private").chmod(0o600)
    (root / "deep" / "er" / "link").symlink_to("../run.sh")
    (root / "dangling").symlink_to("nowhere")


def describe(root: Path) -> dict[bytes, tuple[int, bytes]]:
    """Relative path to mode and content of everything below `root`."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            entry = (stat.S_IFLNK, os.fsencode(path.readlink()))
        else:
            entry = (mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
        found[os.fsencode(path.relative_to(root))] = entry
    return found


class FileChecks(Checks):
    """Reading and writing single files."""

    @pytest.mark.parametrize("size", [0, 1, 65_537, 20_000_000])
    async def test_bytes_round_trip(self, sandbox: Sandbox, here: str, size: int) -> None:
        """Any size, any byte."""
        data = (bytes(range(256)) * (size // 256 + 1))[:size]
        await sandbox.write_bytes(f"{here}/f", data)
        assert await sandbox.read_bytes(f"{here}/f") == data
        assert (await sandbox.exec(f"wc -c <{here}/f")).stdout.split() == [str(size).encode()]

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_odd_names(self, sandbox: Sandbox, here: str, name: str) -> None:
        """No name needs quoting by the caller."""
        await sandbox.write_bytes(f"{here}/{name}", name.encode())
        assert await sandbox.read_bytes(f"{here}/{name}") == name.encode()
        assert [info.name for info in await sandbox.list_dir(here)] == [name]
        await sandbox.remove(f"{here}/{name}")
        assert not await sandbox.exists(f"{here}/{name}")

    @pytest.mark.parametrize("name", ["-", "--help", "back\\nslash", "raw\udcff"])
    async def test_odd_relative_names_by_every_way(self, sandbox: Sandbox, tmp_path: Path, name: str) -> None:
        """Little and much data, as a file, a folder, and in both directions."""
        for size in (10, 300_000):
            data = os.urandom(size)
            await sandbox.write_bytes(name, data)
            assert await sandbox.read_bytes(name) == data
            assert await sandbox.read_bytes(name, offset=2, limit=3) == data[2:5]
            assert ((await sandbox.stat(name)).name, (await sandbox.stat(name)).size) == (name, size)
            await sandbox.download(name, tmp_path / "down")
            await sandbox.remove(name)
            assert not await sandbox.exists(name)
            await sandbox.upload(tmp_path / "down", name)
            assert await sandbox.read_bytes(name) == data
            await sandbox.remove(name)
        await sandbox.mkdir(name)
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "in").write_bytes(b"inside")
        await sandbox.upload(tmp_path / "tree", name)
        assert [info.name for info in await sandbox.list_dir(name)] == ["in"]
        await sandbox.download(name, tmp_path / "back")
        assert (tmp_path / "back" / "in").read_bytes() == b"inside"
        await sandbox.remove(name, recursive=True)
        assert not await sandbox.exists(name)

    async def test_writing_makes_parents_and_replaces(self, sandbox: Sandbox, here: str) -> None:
        """And sets the mode where one is given."""
        await sandbox.write_bytes(f"{here}/a/b/c", b"old and longer")
        await sandbox.write_bytes(f"{here}/a/b/c", b"new", mode=0o750)
        assert (
            await sandbox.exec(f"cat {here}/a/b/c; stat -c %a {here}/a/b/c; ls {here}/a/b")
        ).stdout == b"new750\nc\n"

    async def test_parts_of_a_file(self, sandbox: Sandbox, here: str) -> None:
        """By offset and limit; beyond the end there is nothing."""
        await sandbox.write_bytes(f"{here}/f", b"0123456789" * 1000)
        assert await sandbox.read_bytes(f"{here}/f", offset=9_995) == b"56789"
        assert await sandbox.read_bytes(f"{here}/f", offset=3, limit=4) == b"3456"
        assert await sandbox.read_bytes(f"{here}/f", offset=20_000, limit=4) == b""

    async def test_relative_paths_start_in_the_workdir(self, sandbox: Sandbox) -> None:
        """As for commands."""
        await sandbox.write_text("relative.txt", "ünï\n")
        assert await sandbox.read_text(f"{sandbox.workdir}/relative.txt") == "ünï\n"
        assert (await sandbox.exec("cat relative.txt; rm relative.txt")).output == "ünï\n"

    async def test_paths_may_be_path_objects(self, sandbox: Sandbox, here: str, tmp_path: Path) -> None:
        """Wherever a path is asked for."""
        folder = PurePosixPath(here)
        await sandbox.mkdir(folder / "d")
        await sandbox.write_text(folder / "d" / "f", "text")
        assert await sandbox.read_bytes(folder / "d" / "f") == b"text"
        assert await sandbox.exists(folder / "d")
        assert (await sandbox.stat(folder / "d" / "f")).path == f"{here}/d/f"
        assert [info.path for info in await sandbox.list_dir(folder / "d")] == [f"{here}/d/f"]
        await sandbox.download(folder / "d" / "f", tmp_path)
        await sandbox.upload(tmp_path / "f", folder / "e")
        assert await sandbox.read_text(folder / "e") == "text"
        await sandbox.remove(folder / "e")
        assert not await sandbox.exists(folder / "e")

    async def test_failures_are_the_built_in_ones(self, sandbox: Sandbox, here: str) -> None:
        """FileNotFoundError, IsADirectoryError, NotADirectoryError, with the path in them."""
        await sandbox.write_bytes(f"{here}/file", b"x")
        with pytest.raises(FileNotFoundError, match="missing"):
            await sandbox.read_bytes(f"{here}/missing")
        with pytest.raises(IsADirectoryError):
            await sandbox.read_bytes(here)
        with pytest.raises(IsADirectoryError):
            await sandbox.write_bytes(here, b"x")
        with pytest.raises(OSError, match="file"):
            await sandbox.write_bytes(f"{here}/file/below", b"x")
        with pytest.raises(FileNotFoundError):
            await sandbox.list_dir(f"{here}/missing")
        with pytest.raises(FileNotFoundError):
            await sandbox.remove(f"{here}/missing")

    async def test_looking_around(self, sandbox: Sandbox, here: str) -> None:
        """exists, stat, list_dir, mkdir, remove."""
        await sandbox.mkdir(f"{here}/d/e")
        await sandbox.write_bytes(f"{here}/d/f", b"12345", mode=0o640)
        await sandbox.exec(f"ln -s f {here}/d/l")
        assert await sandbox.exists(f"{here}/d")
        assert not await sandbox.exists(f"{here}/nope")
        info = await sandbox.stat(f"{here}/d/f")
        assert (info.size, info.mode & 0o777) == (5, 0o640)
        assert [entry.name for entry in await sandbox.list_dir(f"{here}/d")] == ["e", "f", "l"]
        with pytest.raises(OSError, match="d"):
            await sandbox.remove(f"{here}/d")
        await sandbox.remove(f"{here}/d", recursive=True)
        assert not await sandbox.exists(f"{here}/d")

    async def test_writers_at_once(self, sandbox: Sandbox, here: str) -> None:
        """Every file is some writer's whole content."""
        payloads = [bytes([n]) * 200_000 for n in range(8)]
        await asyncio.gather(*(sandbox.write_bytes(f"{here}/same", data) for data in payloads))
        assert await sandbox.read_bytes(f"{here}/same") in payloads

    async def test_a_file_in_memory(self, sandbox: Sandbox) -> None:
        """A tmpfs inside is as good as a disk."""
        self.need("own_root")
        if not (await sandbox.exec("test -w /dev/shm")).ok:
            pytest.skip("no writable /dev/shm")
        await sandbox.write_bytes("/dev/shm/f", b"in memory")
        assert (await sandbox.exec("cat /dev/shm/f")).stdout == b"in memory"
        assert await sandbox.read_bytes("/dev/shm/f") == b"in memory"


class TransferChecks(Checks):
    """Moving files and trees."""

    async def test_a_tree_goes_up_and_comes_back(self, sandbox: Sandbox, here: str, tmp_path: Path) -> None:
        """Modes, links, empty folders and odd names are kept."""
        make_tree(tmp_path / "from")
        await sandbox.upload(tmp_path / "from", f"{here}/new/tree")
        result = await sandbox.exec(
            "stat -c %a deep/run.sh deep/private; readlink deep/er/link; ls -d 'empty folder'",
            cwd=f"{here}/new/tree",
        )
        assert result.stdout == b"755\n600\n../run.sh\nempty folder\n"
        await sandbox.download(f"{here}/new/tree", tmp_path / "to")
        assert describe(tmp_path / "to") == describe(tmp_path / "from")

    async def test_one_file_goes_to_its_exact_name(self, sandbox: Sandbox, here: str, tmp_path: Path) -> None:
        """Not into a folder of that name; parents are made on both sides."""
        (tmp_path / "f").write_bytes(b"content")
        (tmp_path / "f").chmod(0o751)
        await sandbox.upload(tmp_path / "f", f"{here}/x/y/other name")
        assert (await sandbox.exec(["stat", "-c", "%a %s", f"{here}/x/y/other name"])).stdout == b"751 7\n"
        await sandbox.download(f"{here}/x/y/other name", tmp_path / "a" / "b")
        assert (tmp_path / "a" / "b").read_bytes() == b"content"
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o751

    async def test_uploading_into_an_existing_folder_merges(
        self, sandbox: Sandbox, here: str, tmp_path: Path
    ) -> None:
        """What was there stays unless it is replaced."""
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "both").write_bytes(b"new")
        await sandbox.write_bytes(f"{here}/d/both", b"old")
        await sandbox.write_bytes(f"{here}/d/only", b"kept")
        await sandbox.upload(tmp_path / "d", f"{here}/d")
        assert (await sandbox.exec(f"cat {here}/d/both {here}/d/only")).stdout == b"newkept"

    async def test_a_large_file_goes_both_ways(self, sandbox: Sandbox, here: str, tmp_path: Path) -> None:
        """As a stream."""
        (tmp_path / "big").write_bytes(os.urandom(1 << 20) * self.features.bulk_mb)
        await sandbox.upload(tmp_path / "big", f"{here}/big")
        await sandbox.download(f"{here}/big", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / "big").read_bytes()

    async def test_a_link_out_of_a_downloaded_tree_harms_nobody(
        self, sandbox: Sandbox, here: str, tmp_path: Path
    ) -> None:
        """It is refused or left out; no file outside the target is touched or exposed."""
        await sandbox.exec(
            f"mkdir {here}/t && ln -s /etc/passwd {here}/t/abs && ln -s ../../../x {here}/t/up && echo ok >{here}/t/ok",
            check=True,
        )
        try:
            await sandbox.download(f"{here}/t", tmp_path / "to")
        except UnsafeArchive:
            return
        assert {path.name for path in (tmp_path / "to").iterdir()} == {"ok"}

    async def test_what_is_unsafe_can_be_left_out(self, sandbox: Sandbox, here: str, tmp_path: Path) -> None:
        """The rest arrives, and what was left out is named."""
        await sandbox.exec(
            f"mkdir -p {here}/v/bin && cd {here}/v && ln -s /usr/bin/env bin/python && mkfifo pipe && echo ok >ok",
            check=True,
        )
        with pytest.raises(UnsafeArchive, match="unsafe='skip'"):
            await sandbox.download(f"{here}/v", tmp_path / "refused")
        left_out = await sandbox.download(f"{here}/v", tmp_path / "to", unsafe="skip")
        assert sorted(name.removeprefix("./") for name in left_out) == ["bin/python", "pipe"]
        assert sorted(path.name for path in (tmp_path / "to").rglob("*")) == ["bin", "ok"]

    async def test_missing_sources_are_named(self, sandbox: Sandbox, here: str, tmp_path: Path) -> None:
        """On either side."""
        with pytest.raises(FileNotFoundError, match="nothing-here"):
            await sandbox.upload(tmp_path / "nothing-here", f"{here}/x")
        with pytest.raises(FileNotFoundError, match="nothing-there"):
            await sandbox.download(f"{here}/nothing-there", tmp_path / "x")
        assert not (tmp_path / "x").exists()
