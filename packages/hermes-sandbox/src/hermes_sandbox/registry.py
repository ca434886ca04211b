"""Find backends by name, and make sandboxes on them."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hermes_sandbox.backend import Backend, ForgetsSnapshots
from hermes_sandbox.errors import Unavailable
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.ownership import with_owner
from hermes_sandbox.sandbox import Sandbox, close_for_good
from hermes_sandbox.spec import SandboxSpec, Snapshot

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hermes_sandbox.backends"
"""The entry-point group: a name, and the backend's class."""

BUILT_IN: Mapping[str, tuple[str, str, str]] = {
    "local": ("hermes_sandbox.backends.local", "LocalBackend", ""),
    "docker": ("hermes_sandbox.backends.docker", "DockerBackend", "docker"),
    "ssh": ("hermes_sandbox.backends.ssh", "SshBackend", "ssh"),
    "singularity": ("hermes_sandbox.backends.singularity", "SingularityBackend", ""),
    "modal": ("hermes_sandbox.backends.modal", "ModalBackend", "modal"),
    "daytona": ("hermes_sandbox.backends.daytona", "DaytonaBackend", "daytona"),
}
"""Name, module, class, and the extra that installs what the module needs."""


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return entry_points(group=GROUP)


def list_backends() -> list[str]:
    """The names of all backends, those of other packages included."""
    return sorted({*BUILT_IN, *(point.name for point in _entry_points())})


def backend_class(name: str) -> Any:
    """The class of a backend; its `Options` dataclass is an attribute of it.

    Raises:
        ValueError: There is no such backend.
        Unavailable: What it needs is not installed.
    """
    if name in BUILT_IN:
        module, attribute, extra = BUILT_IN[name]
        try:
            return getattr(import_module(module), attribute)
        except ImportError as error:
            if extra and not (error.name or "").startswith("hermes_sandbox"):
                raise Unavailable(
                    f"the {name} backend needs {error.name!r}; pip install 'hermes-sandbox[{extra}]'"
                ) from error
            raise
    for point in _entry_points():
        if point.name == name:
            return point.load()
    near = difflib.get_close_matches(name, list_backends(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"there is no backend {name!r}{hint} (there are {', '.join(list_backends())})")


def get_backend(name: str, **options: Any) -> Backend:
    """A backend, with options as its `Options` dataclass names them."""
    kind = backend_class(name)
    needed = [
        field.name for field in fields(kind.Options) if field.default is field.default_factory is MISSING
    ]
    if missing := [each for each in needed if each not in options]:
        given = " ".join(f"--option {name}.{each}={each.upper()}" for each in missing)
        raise TypeError(
            f"the {name} backend needs the option {', '.join(missing)}; give it, on the command line as {given}"
        )
    try:
        return kind(kind.Options(**options))
    except TypeError as error:
        raise TypeError(f"options of the {name} backend: {error}") from error


class Creation:
    """A sandbox about to be: `await` it, or enter it with `async with`."""

    def __init__(self, name: str, spec: SandboxSpec, options: Mapping[str, Any]) -> None:
        """`create_sandbox` makes these."""
        self._name, self._spec, self._options = name, spec, options
        self._sandbox: Sandbox | None = None

    def __await__(self) -> Generator[Any, None, Sandbox]:
        return self._create().__await__()

    async def __aenter__(self) -> Sandbox:
        self._sandbox = await self._create()
        return self._sandbox

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sandbox is not None:
            await close_for_good(self._sandbox)

    async def _create(self) -> Sandbox:
        from hermes_sandbox.reaping import reap_once

        labels = with_owner(self._spec.labels, self._spec.lifetime)
        await asyncio.to_thread(backend_class, self._name)  # importing an SDK may take a second
        backend = get_backend(self._name, **self._options)
        try:
            await reap_once(backend, self._options)
            machine = await backend.create(self._spec, labels)
        except BaseException:
            await uncancelled(backend.close())
            raise
        sandbox = Sandbox(backend, machine, self._spec)
        try:
            await sandbox.prepare()
        except BaseException:
            await uncancelled(close_for_good(sandbox))
            raise
        return sandbox


def create_sandbox(name: str, spec: SandboxSpec | None = None, **options: Any) -> Creation:
    """Make a sandbox on a backend.

    Args:
        name: The backend: local, docker, ssh, singularity, modal, daytona, or another package's.
        spec: What it should be.
        **options: The backend's own options.

    Returns:
        Something to await, or to enter with `async with`, which deletes the sandbox at the end.

    Raises:
        SandboxStartError: It could not be started; nothing is left behind.
        Unsupported: The backend cannot enforce something in the spec.
        Unavailable: The backend does not answer, or what it needs is not installed.
    """
    return Creation(name, spec or SandboxSpec(), options)


async def attach_sandbox(name: str, id: str, **options: Any) -> Sandbox:
    """Find a running sandbox that this or another process created. It has no lifetime of its own here.

    Raises:
        SandboxGone: There is none with this id.
    """
    backend = await asyncio.to_thread(get_backend, name, **options)  # importing an SDK may take a second
    try:
        sandbox = Sandbox(backend, await backend.attach(id), SandboxSpec())
    except BaseException:
        await uncancelled(backend.close())
        raise
    try:
        await sandbox.prepare()
    except BaseException:
        await sandbox.detach()
        raise
    return sandbox


async def delete_snapshot(snapshot: Snapshot, **options: Any) -> None:
    """Remove what `Sandbox.snapshot` saved. Nothing happens where it is gone.

    Args:
        snapshot: The snapshot; no sandbox from it may be running.
        **options: The backend's own options.
    """
    backend = await asyncio.to_thread(get_backend, snapshot.backend, **options)
    try:
        if isinstance(backend, ForgetsSnapshots):
            await backend.forget(snapshot)
    finally:
        await backend.close()
