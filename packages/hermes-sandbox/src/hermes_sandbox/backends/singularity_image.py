"""Where a Singularity sandbox's file system comes from."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hermes_sandbox.backends.client_process import run_program
from hermes_sandbox.errors import ImageError, Unavailable
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.jobs import MARK
from hermes_sandbox.owned_folders import make_owned_folder, remove_owned_folder
from hermes_sandbox.ownership import owner_labels
from hermes_sandbox.spec import Dockerfile, Image

SCHEMES = (
    "docker:",
    "docker-daemon:",
    "docker-archive:",
    "oci:",
    "oci-archive:",
    "oras:",
    "library:",
    "shub:",
)


async def image_source(image: Image | None) -> Path | str:
    """A local path to use as it is, or a source for `apptainer build`. Docker builds what is a Dockerfile.

    Raises:
        ImageError: No image was given, or one of a kind that apptainer cannot read.
    """
    if image is None:
        raise ImageError("the singularity backend needs an image: a .sif file, a folder, or docker://NAME")
    if isinstance(image, Path):
        return image
    if isinstance(image, Dockerfile):
        return await _built(image)
    if not isinstance(image, str):
        raise ImageError(f"a snapshot of the {image.backend} backend cannot start a singularity sandbox")
    if image.endswith(".sif") or image.startswith(("/", "./", "../")):
        return Path(image)
    return image if image.startswith(SCHEMES) else f"docker://{image}"


async def _built(dockerfile: Dockerfile) -> str:
    from hermes_sandbox.registry import get_backend  # which knows this module's backend too

    docker: Any = None
    try:
        docker = await asyncio.to_thread(get_backend, "docker")
        return f"docker-daemon:{await docker.build(dockerfile)}"
    except Unavailable as error:
        raise ImageError(
            f"apptainer builds no Dockerfiles, and Docker, which would, is not here ({error}): give a .sif file, or the "
            "name of an image in a registry"
        ) from error
    finally:
        if docker is not None:
            await docker.close()


async def local_image(binary: str, source: Path | str, cache: Path, timeout: float) -> Path:
    """The path of an image: the given one, or the cached conversion of a registry's or Docker's image.

    A conversion happens once, also among processes; a tag that moved is not noticed until its folder in the
    cache is removed, except for images of the local Docker daemon, which are known by their ids.
    """
    if isinstance(source, Path):
        if not await asyncio.to_thread(source.exists):
            raise ImageError(f"there is no image {source}")
        return await asyncio.to_thread(source.resolve)
    identity = await _identity(source)
    ready = cache / hashlib.sha256(identity.encode()).hexdigest()[:24]
    if await asyncio.to_thread(ready.is_dir):
        return ready
    await asyncio.to_thread(cache.mkdir, parents=True, exist_ok=True)
    with _lock_file(cache / f"{ready.name}.lock") as descriptor:
        await _acquire(descriptor, timeout)
        if not await asyncio.to_thread(ready.is_dir):
            await _convert(binary, source, ready, timeout)
    return ready


async def _identity(source: str) -> str:
    """What tells two images of one name apart: for the local daemon's, the id."""
    scheme, _, name = source.partition(":")
    if scheme != "docker-daemon":
        return source
    name = name.lstrip("/")
    try:
        code, out, err = await run_program(["docker", "image", "inspect", "-f", "{{.Id}}", name], timeout=60)
    except FileNotFoundError:
        return source
    if code:
        raise ImageError(f"docker has no image {name!r}: {err.decode(errors='replace').strip()}")
    return source + out.decode()


async def _convert(binary: str, source: str, ready: Path, timeout: float) -> None:
    drafts = ready.parent / "drafts"
    await asyncio.to_thread(drafts.mkdir, exist_ok=True)
    draft = await asyncio.to_thread(make_owned_folder, drafts, owner_labels())
    try:
        image = draft.path / "image"
        argv = [binary, "-q", "build", "--force", "--sandbox", str(image), source]
        # What it unpacks lies in the draft too, and the mark tells that it belongs to the draft.
        scratch = {f"{name}_TMPDIR": str(draft.path) for name in ("APPTAINER", "SINGULARITY")}
        env = {**os.environ, **scratch, MARK: f"{draft.id}/"}
        code, out, err = await run_program(argv, timeout=timeout, env=env)
        if code:
            said = (err + out).decode(errors="replace").strip()[-2000:]
            raise ImageError(f"apptainer cannot build {source}: {said}")
        await asyncio.to_thread(os.rename, image, ready)
    finally:
        with suppress(OSError):  # its labels tell the next reap
            await uncancelled(asyncio.to_thread(remove_owned_folder, drafts, draft.id))


@contextmanager
def _lock_file(path: Path) -> Generator[int, None, None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def _acquire(descriptor: int, timeout: float) -> None:
    """Take the lock without holding a thread while another process builds."""
    async with asyncio.timeout(timeout):
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                await asyncio.sleep(0.2)
