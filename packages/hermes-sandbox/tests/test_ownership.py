"""Owners are told apart, dead ones are recognised, and what is not ours is left alone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hermes_sandbox.backend import Report, SandboxInfo
from hermes_sandbox.errors import Unavailable
from hermes_sandbox.owned_folders import (
    base_folder,
    find_owned_folder,
    make_owned_folder,
    owned_folders,
    remove_owned_folder,
)
from hermes_sandbox.ownership import DEADLINE, OWNER, Owner, abandoned, owner_labels, with_owner
from hermes_sandbox.reaping import reap_backend, reap_each

PRINT_OWNER = (
    "from hermes_sandbox.ownership import owner_labels; print(owner_labels(3600)['hermes.owner'], flush=True)"
)


class Shelf:
    """A backend that holds labelled things and nothing else."""

    name = "shelf"

    def __init__(
        self, things: Mapping[str, Mapping[str, str]], *, stuck: tuple[str, ...] = (), up: bool = True
    ) -> None:
        self.things, self.stuck, self.up = dict(things), stuck, up

    async def preflight(self) -> Report:
        return Report(self.up, "a shelf")

    async def list(self, labels: Mapping[str, str]) -> list[SandboxInfo]:
        if not self.up:
            raise Unavailable("no shelf")
        return [SandboxInfo(id, self.name, found) for id, found in self.things.items()]

    async def delete(self, id: str) -> None:
        if id in self.stuck:
            raise Unavailable("it is stuck")
        del self.things[id]


def test_the_current_process_is_alive_and_survives_the_round_trip() -> None:
    owner = Owner.current()
    assert owner.life() == "alive"
    assert Owner.parse(str(owner)) == owner
    assert owner.pid == os.getpid()


@pytest.mark.parametrize("text", ["", "a/b/c/d/e", "a/b/c/1", "////", "someone else's label"])
def test_what_is_no_owner_is_not_read_as_one(text: str) -> None:
    assert Owner.parse(text) is None
    assert abandoned({OWNER: text, DEADLINE: "1"}) is None


def test_a_killed_process_is_dead_even_while_it_is_a_zombie() -> None:
    code = PRINT_OWNER + "; import time; time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    owner = Owner.parse(process.stdout.readline().strip())
    assert owner is not None
    assert owner.life() == "alive"
    process.send_signal(signal.SIGKILL)
    while owner.life() == "alive":
        time.sleep(0.01)
    assert owner.life() == "dead"
    process.wait()
    process.stdout.close()
    assert owner.life() == "dead"


def test_a_reused_pid_and_an_earlier_boot_are_dead() -> None:
    owner = Owner.current()
    assert replace(owner, start="1").life() == "dead"
    assert replace(owner, boot="another").life() == "dead"


def test_nothing_is_concluded_about_other_hosts_and_namespaces() -> None:
    owner = Owner.current()
    assert replace(owner, host="other", start="1").life() == "unknown"
    assert replace(owner, namespace="1", start="1").life() == "unknown"
    elsewhere = {OWNER: str(replace(owner, host="other")), DEADLINE: str(int(time.time()) + 60)}
    assert abandoned(elsewhere) is None
    assert abandoned(elsewhere, now=time.time() + 120) == "it is past its deadline"


def test_labels_name_the_owner_and_a_deadline() -> None:
    before, labels, after = time.time(), owner_labels(100), time.time()
    assert before + 100 <= float(labels[DEADLINE]) <= after + 101
    assert abandoned(labels) is None
    assert with_owner({"team": "a"})["team"] == "a"
    with pytest.raises(ValueError, match="keeps for itself"):
        with_owner({"hermes.owner": "me"})


async def test_reaping_removes_what_is_abandoned_and_nothing_else() -> None:
    live = owner_labels()
    dead = {OWNER: str(replace(Owner.current(), start="1")), DEADLINE: live[DEADLINE]}
    shelf = Shelf(
        {"ours": live, "dead": dead, "stuck": dead, "late": live | {DEADLINE: "1"}, "foreign": {"a": "b"}},
        stuck=("stuck",),
    )
    assert {r.id for r in await reap_backend(shelf, dry_run=True)} == {"dead", "stuck", "late"}  # type: ignore[arg-type]
    assert len(shelf.things) == 5
    reaped = {r.id: r for r in await reap_backend(shelf)}  # type: ignore[arg-type]
    assert set(shelf.things) == {"ours", "foreign", "stuck"}
    assert reaped["stuck"].error == "it is stuck"
    assert "is dead" in reaped["dead"].reason
    assert "deadline" in reaped["late"].reason


async def test_a_backend_that_is_down_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Lying(Shelf):
        async def preflight(self) -> Report:
            return Report(True, "or so it says")

    dead = {OWNER: str(replace(Owner.current(), start="1"))}
    good = Shelf({"dead": dead})
    reaped = await reap_each([Shelf({}, up=False), Lying({}, up=False), good])  # type: ignore[list-item]
    assert [r.id for r in reaped] == ["dead"]
    assert "no shelf" in caplog.text


def test_owned_folders_are_found_and_removed(tmp_path: Path) -> None:
    folder = make_owned_folder(tmp_path, owner_labels(), data={"image": "x"})
    (folder.path / "locked").mkdir()
    (folder.path / "locked" / "file").write_text("x")
    (folder.path / "locked").chmod(0o500)
    (tmp_path / "stranger").mkdir()
    (tmp_path / "broken.json").write_text("{")
    assert [found.id for found in owned_folders(tmp_path)] == [folder.id]
    assert find_owned_folder(tmp_path, folder.id) == folder
    assert find_owned_folder(tmp_path, "../x") is None
    remove_owned_folder(tmp_path, folder.id)
    remove_owned_folder(tmp_path, folder.id)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.json", "stranger"]


def test_the_base_folder_is_private_and_refused_when_it_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    base = base_folder("kind")
    assert base.stat().st_mode & 0o777 == 0o700
    base.rmdir()
    base.symlink_to("/tmp")
    with pytest.raises(PermissionError, match="TMPDIR"):
        base_folder("kind")
