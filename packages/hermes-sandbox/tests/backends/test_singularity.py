"""What the singularity backend alone promises, with a real apptainer."""

import asyncio
import json
import pickle
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hermes_sandbox import ImageError, SandboxSpec, Snapshot, create_sandbox, get_backend
from hermes_sandbox.backends import singularity
from hermes_sandbox.backends.singularity import SingularityBackend
from hermes_sandbox.owned_folders import base_folder, make_owned_folder
from hermes_sandbox.ownership import OWNER, Owner, owner_labels
from hermes_sandbox.reaping import reap
from sandbox_docker import eventually

pytestmark = [pytest.mark.singularity, pytest.mark.docker, pytest.mark.usefixtures("test_image")]
IMAGE = "docker-daemon:hermes-test:bookworm"
BUILDER = """
import asyncio, pickle, sys
from hermes_sandbox import SandboxSpec, create_sandbox
image, options = pickle.load(sys.stdin.buffer)
asyncio.run(create_sandbox("singularity", SandboxSpec(image=image), **options)._create())
"""


def processes_with(text: str) -> list[str]:
    """Command lines and environments of running processes that hold `text`."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.slow
async def test_a_conversion_that_was_killed_leaves_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    options = {"cache": str(cache)}
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", BUILDER, stdin=asyncio.subprocess.PIPE)
    assert owner.stdin is not None
    owner.stdin.write(pickle.dumps((IMAGE, options)))
    owner.stdin.close()
    assert await eventually(lambda: [*cache.glob("drafts/*/*")])
    [draft] = [each for each in (cache / "drafts").iterdir() if each.is_dir()]
    owner.kill()
    await owner.wait()
    reaped = await reap({"singularity": options})
    assert f"drafts/{draft.name}" in {each.id for each in reaped if not each.error}
    assert await eventually(lambda: not processes_with(draft.name))
    assert not list((cache / "drafts").iterdir())


@pytest.mark.slow
async def test_an_instance_that_starts_after_its_owner_died_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client that starts it goes on by itself for a moment."""
    monkeypatch.setattr(singularity, "STARTING", 60.0)
    async with create_sandbox("singularity", SandboxSpec(image=IMAGE)) as sandbox:
        image = sandbox._machine.state["image"]
    base = base_folder("singularity")
    dead = owner_labels() | {OWNER: str(replace(Owner.current(), start="1"))}
    folder = make_owned_folder(base, dead, data={"image": image})
    backend = get_backend("singularity")
    assert isinstance(backend, SingularityBackend)
    removing = asyncio.create_task(backend.delete(folder.id))
    await asyncio.sleep(0.5)
    program = shutil.which("apptainer") or "singularity"
    start = (program, "-q", "instance", "start", "--containall", "--no-privs", image, f"hermes-{folder.id}")
    late = await asyncio.create_subprocess_exec(*start)
    assert await late.wait() == 0
    await removing
    listing = await asyncio.create_subprocess_exec(
        *(program, "instance", "list", "--json"), stdout=asyncio.subprocess.PIPE
    )
    assert f"hermes-{folder.id}" not in str(json.loads((await listing.communicate())[0]))


async def test_apptainers_logs_go_with_a_sandbox() -> None:
    async with create_sandbox("singularity", SandboxSpec(image=IMAGE)) as sandbox:
        logs = Path("~/.apptainer/instances/logs").expanduser()
        assert list(logs.glob(f"*/*/*{sandbox.id}*"))
    assert not list(logs.glob(f"*/*/*{sandbox.id}*"))


async def test_a_snapshot_that_is_gone_is_an_image_error(tmp_path: Path) -> None:
    spec = SandboxSpec(image=Snapshot("singularity", str(tmp_path / "snapshots" / "gone")))
    with pytest.raises(ImageError, match="deleted or reaped"):
        await create_sandbox("singularity", spec)
