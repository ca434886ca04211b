"""Sandboxes for agents: local, Docker, SSH, Singularity, Modal and Daytona behind one exact contract.

async with create_sandbox("docker", SandboxSpec(image="python:3.13-slim")) as sandbox:
    result = await sandbox.exec("pytest -q", timeout=120)
"""

from hermes_sandbox.backend import Backend, Machine, Report, SandboxInfo
from hermes_sandbox.errors import (
    AuthError,
    CommandFailed,
    ImageError,
    QuotaError,
    SandboxError,
    SandboxGone,
    SandboxStartError,
    Unavailable,
    UnsafeArchive,
    Unsupported,
)
from hermes_sandbox.paths import FileInfo
from hermes_sandbox.process import Process, ProcessOutput
from hermes_sandbox.reaping import Reaped, reap
from hermes_sandbox.registry import (
    attach_sandbox,
    create_sandbox,
    delete_snapshot,
    get_backend,
    list_backends,
)
from hermes_sandbox.result import ExecResult
from hermes_sandbox.sandbox import Sandbox
from hermes_sandbox.shell import Shell
from hermes_sandbox.spec import (
    Allow,
    Dockerfile,
    Image,
    Mount,
    NamedNetwork,
    Network,
    SandboxSpec,
    Snapshot,
)
from hermes_sandbox.sync import SyncProcess, SyncSandbox, SyncShell

__all__ = [
    "Allow",
    "AuthError",
    "Backend",
    "CommandFailed",
    "Dockerfile",
    "ExecResult",
    "FileInfo",
    "Image",
    "ImageError",
    "Machine",
    "Mount",
    "NamedNetwork",
    "Network",
    "Process",
    "ProcessOutput",
    "QuotaError",
    "Reaped",
    "Report",
    "Sandbox",
    "SandboxError",
    "SandboxGone",
    "SandboxInfo",
    "SandboxSpec",
    "SandboxStartError",
    "Shell",
    "Snapshot",
    "SyncProcess",
    "SyncSandbox",
    "SyncShell",
    "Unavailable",
    "UnsafeArchive",
    "Unsupported",
    "attach_sandbox",
    "create_sandbox",
    "delete_snapshot",
    "get_backend",
    "list_backends",
    "reap",
]
