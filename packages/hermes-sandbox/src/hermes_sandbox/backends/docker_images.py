"""Images of Docker sandboxes: pulled when missing, built once for each content."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from aiodocker.exceptions import DockerError

from hermes_sandbox.backends.docker_errors import docker_errors
from hermes_sandbox.backends.dockerignore import ignored
from hermes_sandbox.errors import ImageError, Unsupported
from hermes_sandbox.gate import slot
from hermes_sandbox.spec import Dockerfile, Image, Snapshot

BUILT = "hermes-sandbox-build"
LOG_TAIL = 3000

Pull = Literal["missing", "always", "never"]


async def resolve_image(client: Any, image: Image | None, pull: Pull) -> str:
    """The reference of an image that is there, after a pull or a build where that is needed.

    Raises:
        ImageError: It cannot be had.
    """
    if image is None or image == "":
        raise ImageError("a Docker sandbox needs an image: SandboxSpec(image='debian:stable-slim')")
    if isinstance(image, Dockerfile):
        return await build_image(client, image)
    if isinstance(image, Snapshot):
        if image.backend != "docker":
            raise Unsupported(f"a snapshot of the {image.backend} backend is no Docker image")
        return image.reference
    if isinstance(image, Path):
        raise Unsupported(f"Docker cannot run {image}; give a reference, or Dockerfile(context) to build one")
    if pull == "always" or not await _present(client, image):
        if pull == "never":
            raise ImageError(f"the image {image!r} is not here, and pull='never'; run `docker pull {image}`")
        await _pull(client, image, always=pull == "always")
    return image


async def _present(client: Any, reference: str) -> bool:
    try:
        await client.images.inspect(reference)
    except DockerError as error:
        if error.status != 404:
            raise
        return False
    return True


async def _pull(client: Any, reference: str, *, always: bool) -> None:
    key = hashlib.sha256(reference.encode()).hexdigest()[:24]
    async with slot(f"pull-{key}"):
        try:
            if always or not await _present(client, reference):
                await client.images.pull(reference)
        except DockerError as error:
            if error.status == 900:
                raise
            raise ImageError(
                f"cannot pull {reference!r}: {error.message}; check the name; for a private one run `docker pull {reference}`"
            ) from error


async def build_image(client: Any, dockerfile: Dockerfile) -> str:
    """Build an image, or find the one built from an equal context; equal builds at once happen once."""
    context = await asyncio.to_thread(_pack_context, dockerfile)
    try:
        reference = f"{BUILT}:{context.digest}"
        if await _present(client, reference):
            return reference
        async with slot(f"build-{context.digest}"):
            if not await _present(client, reference):
                with docker_errors(f"building {dockerfile.context}", starting=True):
                    await _build(client, dockerfile, context, reference)
        return reference
    finally:
        context.archive.close()


class _Context:
    """A packed build context and the hash of its content."""

    def __init__(self, archive: IO[bytes], digest: str) -> None:
        self.archive, self.digest = archive, digest


def _pack_context(dockerfile: Dockerfile) -> _Context:
    root = Path(dockerfile.context)
    if not (root / dockerfile.dockerfile).is_file():
        raise ImageError(f"there is no {dockerfile.dockerfile} in {root}")
    digest = hashlib.sha256(
        json.dumps([dockerfile.dockerfile, sorted(dockerfile.args.items()), dockerfile.target]).encode()
    )
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever builds
    try:
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for path in _context_files(root, dockerfile.dockerfile):
                _add(tar, path, str(path.relative_to(root)), digest)
        archive.seek(0)
    except BaseException:
        archive.close()
        raise
    return _Context(archive, digest.hexdigest()[:32])


def _context_files(root: Path, dockerfile: str) -> Iterator[Path]:
    skip = ignored(root / ".dockerignore")
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name in (dockerfile, ".dockerignore") or not skip(name):
            yield path


def _add(tar: tarfile.TarFile, path: Path, name: str, digest: Any) -> None:
    header = tar.gettarinfo(str(path), name)
    header.uid = header.gid = 0
    header.uname = header.gname = ""
    header.mtime = 0  # as in the hash: the same content is the same layer
    digest.update(
        json.dumps([name, header.mode, header.type.decode(), header.linkname, header.size]).encode()
    )
    if not header.isreg():
        tar.addfile(header)
        return
    with path.open("rb") as source:
        digest.update(hashlib.file_digest(source, "sha256").digest())
        source.seek(0)
        tar.addfile(header, source)


async def _build(client: Any, dockerfile: Dockerfile, context: _Context, reference: str) -> None:
    parameters: dict[str, Any] = {
        "t": reference,
        "dockerfile": dockerfile.dockerfile,
        "rm": "true",
        "forcerm": "true",
        "buildargs": json.dumps(dict(dockerfile.args)),
        "labels": json.dumps({"hermes.build": context.digest}),
    }
    if dockerfile.target is not None:
        parameters["target"] = dockerfile.target
    log: list[str] = []
    # aiodocker's own `build` has no `target`.
    async with client._query(
        "build",
        "POST",
        params=parameters,
        headers={"Content-Type": "application/x-tar"},
        data=context.archive,
        timeout=None,
    ) as response:
        async for line in response.content:
            event = json.loads(line)
            log.append(event.get("stream", ""))
            if "error" in event:
                tail = "".join(log)[-LOG_TAIL:].strip()
                raise ImageError(f"cannot build {dockerfile.context}: {event['error'].strip()}\n{tail}")
