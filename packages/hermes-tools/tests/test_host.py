"""`HostWorkspace`, by the same checks as every workspace and some of its own."""

import asyncio
from pathlib import Path

import pytest
from hermes_tools import HostWorkspace
from hermes_tools.testing import check_workspace
from hermes_tools_waiting import ended, numbers


async def test_it_is_a_workspace(workspace):
    assert len(await check_workspace(workspace)) == 10


async def test_a_check_that_fails_is_named(tmp_path):
    class Forgetful(HostWorkspace):
        async def write_bytes(self, path: str, data: bytes, *, mode: int | None = None) -> None:
            await super().write_bytes(path, data[:-1], mode=mode)

    async with HostWorkspace(tmp_path):
        with pytest.raises(AssertionError, match=r"^files: "):
            await check_workspace(Forgetful(tmp_path))


async def test_closing_ends_what_runs(tmp_path: Path):
    async with HostWorkspace(tmp_path) as workspace:
        await workspace.spawn("sleep 300 & echo $$ $! > running; wait")
        running = await numbers(tmp_path / "running")
    await ended(running)


async def test_a_root_that_is_no_folder_is_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        HostWorkspace(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        HostWorkspace(tmp_path / "file")


async def test_special_files_do_not_hang(tmp_path: Path):
    import os

    os.mkfifo(tmp_path / "pipe")
    async with HostWorkspace(tmp_path) as workspace:
        with pytest.raises(OSError, match="not a regular file"):
            await asyncio.wait_for(workspace.read_bytes("pipe"), 60)
