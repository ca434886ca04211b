"""Would the newest SDKs of the cloud backends still do?

    python .ci/drift.py           the newest releases, in an environment of their own: every call below, then the tests
    python .ci/drift.py --look    the releases of the environment that this runs in: every call below

The version ranges of `hermes-sandbox` say what was tried. A release outside of them, or one from after the date to which
this workspace resolves, is what users will have next. This says which call, parameter, field or base class it dropped.
"""

import argparse
import dataclasses
import importlib
import inspect
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import requires, version
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTERS = ["pytest>=8.4", "pytest-asyncio>=1.2", "pytest-timeout>=2.4", "pytest-xdist>=3.8"]
TESTS = [
    "packages/hermes-sandbox/tests/backends/test_modal_failures.py",
    "packages/hermes-sandbox/tests/backends/test_daytona_failures.py",
]

# One use a line: module:name, then (parameters that we give) or {fields that we read or set}.
USES = {
    "modal": """
        modal:__version__
        modal:Client.from_credentials.aio(token_id, token_secret)
        modal:Client.from_env.aio
        modal:Client.close.aio
        modal:App.lookup.aio(name, client, environment_name, create_if_missing)
        modal:App{app_id}
        modal:Image.from_registry(tag, secret)
        modal:Image.from_dockerfile(path, context_dir, build_args, registry_secret)
        modal:Image.from_id(image_id)
        modal:Image{object_id}
        modal.experimental:image_delete.aio(image_id, client)
        modal:Secret.from_name(name)
        modal:Sandbox.create.aio(app, client, image, tags, timeout, idle_timeout, env, region, secrets, cpu, memory, gpu)
        modal:Sandbox.create.aio(block_network, outbound_cidr_allowlist, outbound_domain_allowlist)
        modal:Sandbox.from_id.aio(sandbox_id, client)
        modal:Sandbox.list.aio(app_id, tags, client)
        modal:Sandbox.exec.aio(text)
        modal:Sandbox.poll.aio
        modal:Sandbox.terminate.aio
        modal:Sandbox.detach.aio
        modal:Sandbox.get_tags.aio
        modal:Sandbox.snapshot_filesystem.aio(timeout, ttl)
        modal:Sandbox{object_id}
        modal.container_process:ContainerProcess.wait.aio
        modal.container_process:ContainerProcess{stdin, stdout, stderr}
        modal.io_streams:StreamWriter.write(data)
        modal.io_streams:StreamWriter.write_eof
        modal.io_streams:StreamWriter.drain.aio
        modal.io_streams:StreamReader.__aiter__
        modal.exception:Error
        modal.exception:AuthError
        modal.exception:PermissionDeniedError
        modal.exception:ResourceExhaustedError
        modal.exception:NotFoundError
        modal.exception:SandboxTerminatedError
        modal.exception:SandboxTimeoutError
        modal.exception:ConflictError
        modal.exception:RemoteError
        modal.exception:ConnectionError
        modal.exception:ServiceError
        modal.exception:InternalError
        modal.exception:TimeoutError
        modal_proto.api_grpc:ModalClientBase{SandboxCreateV2, SandboxListV2, SandboxTerminateV2, SandboxWaitV2}
        modal_proto.api_grpc:ModalClientBase{SandboxGetTaskIdV2, SandboxTagsGetV2, SandboxGetCommandRouterAccess}
        modal_proto.api_grpc:ModalClientBase{ImageGetOrCreate, ImageFromId, AppGetOrCreate, SecretGetOrCreate}
        modal_proto.task_command_router_grpc:TaskCommandRouterBase{TaskExecStart, TaskExecWait, TaskExecStdioRead}
        modal_proto.task_command_router_grpc:TaskCommandRouterBase{TaskExecStdinWrite, TaskSnapshotFilesystem}
        modal_proto.api_pb2:Sandbox{image_id, entrypoint_args, timeout_secs, idle_timeout_secs, secret_ids, resources}
        modal_proto.api_pb2:Sandbox{network_access, scheduler_placement, workdir}
        modal_proto.api_pb2:Resources{milli_cpu_max, memory_mb_max, gpu_config}
    """,
    "daytona": """
        daytona:AsyncDaytona.create(params, timeout)
        daytona:AsyncDaytona.get(sandbox_id_or_name)
        daytona:AsyncDaytona.list(query)
        daytona:AsyncDaytona.close
        daytona:DaytonaConfig{api_key, api_url, target}
        daytona:CreateSandboxFromImageParams{image, resources, labels, env_vars, auto_stop_interval, ephemeral}
        daytona:CreateSandboxFromImageParams{ttl_minutes, network_block_all, network_allow_list, domain_allow_list}
        daytona:CreateSandboxFromSnapshotParams{snapshot, labels, env_vars, auto_stop_interval, ephemeral}
        daytona:ListSandboxesQuery{labels}
        daytona:Resources{cpu, memory, disk, gpu}
        daytona:Image.from_dockerfile(path)
        daytona:SessionExecuteRequest{command, run_async}
        daytona:AsyncSandbox{id, labels, state, auto_stop_interval, fs, process}
        daytona:AsyncSandbox.delete
        daytona:AsyncSandbox.start
        daytona:AsyncSandbox.stop
        daytona:AsyncSandbox.set_auto_delete_interval(interval)
        daytona:AsyncSandbox.refresh_activity
        daytona:AsyncSandbox.create_snapshot(name, timeout)
        daytona._async.snapshot:AsyncSnapshotService.get(name)
        daytona._async.snapshot:AsyncSnapshotService.delete(snapshot)
        daytona._async.snapshot:AsyncSnapshotService.list(page, limit)
        daytona.common.snapshot:PaginatedSnapshots{items, total_pages}
        daytona.common.snapshot:Snapshot{name}
        daytona.common.snapshot:Snapshot{cpu, mem, disk, gpu}
        daytona._async.process:AsyncProcess.create_session(session_id)
        daytona._async.process:AsyncProcess.execute_session_command(session_id, req)
        daytona._async.process:AsyncProcess.send_session_command_input(session_id, command_id, data)
        daytona._async.process:AsyncProcess.get_session_command_logs_async(session_id, command_id, on_stdout, on_stderr)
        daytona._async.process:AsyncProcess.delete_session(session_id)
        daytona._async.filesystem:AsyncFileSystem.upload_file_stream(source, remote_path)
        daytona._async.filesystem:AsyncFileSystem.download_file_stream(remote_path)
        daytona._async.filesystem:AsyncFileSystem.delete_file(path)
        daytona.common.process:SessionExecuteResponse{cmd_id}
        daytona.common.errors:DaytonaError{status_code}
        daytona.common.errors:DaytonaAuthenticationError
        daytona.common.errors:DaytonaForbiddenError
        daytona.common.errors:DaytonaRateLimitError
        daytona.common.errors:DaytonaNotFoundError
        daytona.common.errors:DaytonaGoneError
        daytona.common.errors:DaytonaConnectionError
        daytona.common.errors:DaytonaTimeoutError
        daytona.common.errors:DaytonaBadGatewayError
        daytona.common.errors:DaytonaServiceUnavailableError
        daytona.common.errors:DaytonaInternalServerError
    """,
}
_USE = re.compile(r"(?P<module>[\w.]+):(?P<name>[\w.]+)(?:\((?P<parameters>[^)]*)\)|\{(?P<fields>[^}]*)\})?$")


def uses(text: str) -> Iterator[re.Match[str]]:
    """The uses in a table."""
    for line in filter(None, map(str.strip, text.splitlines())):
        use = _USE.match(line)
        if use is None:
            raise ValueError(f"not a use: {line}")
        yield use


def words(text: str | None) -> list[str]:
    """The names in a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def dropped(text: str) -> list[str]:
    """What a table of uses names and the installed modules lack, each as what one would look for in a change log."""
    found = []
    for use in uses(text):
        module, name = use["module"], use["name"]
        try:
            thing = importlib.import_module(module)
            for part in name.split("."):
                thing = getattr(thing, part)
        except (ImportError, AttributeError):
            found.append(f"{module}.{name}")
            continue
        found += [f"{module}.{name}({each}=)" for each in words(use["parameters"]) if not takes(thing, each)]
        found += [f"{module}.{name}.{each}" for each in words(use["fields"]) if not has(thing, each)]
    return found


def takes(function: object, parameter: str) -> bool:
    """Whether a function has a parameter of that name, or takes any."""
    known = inspect.signature(function).parameters  # type: ignore[arg-type]
    return parameter in known or any(each.kind is each.VAR_KEYWORD for each in known.values())


def has(kind: type, field: str) -> bool:
    """Whether instances of a class have a field, as far as the class tells."""
    if hasattr(kind, field) or field in getattr(kind, "model_fields", {}):
        return True
    if field in getattr(getattr(kind, "DESCRIPTOR", None), "fields_by_name", {}):
        return True
    if dataclasses.is_dataclass(kind) and field in {each.name for each in dataclasses.fields(kind)}:
        return True
    if any(field in getattr(each, "__annotations__", {}) for each in kind.__mro__):
        return True
    # Set by a method: its code names it.
    code = "".join(inspect.getsource(each) for each in kind.__mro__ if each.__module__ == kind.__module__)
    return re.search(rf"self\.{field}\b", code) is not None


def look() -> int:
    """Report on the SDKs of this environment; the number of those that lack something."""
    ranges = {line.split(";")[0].strip() for line in requires("hermes-sandbox") or []}
    bad = 0
    for sdk, text in USES.items():
        stated = next(line for line in ranges if re.match(rf"{sdk}\b", line))
        lacking = dropped(text)
        state = "has every call that we use" if not lacking else "DROPPED what hermes-sandbox uses:"
        print(f"{sdk} {version(sdk)} (stated: {stated}) {state}", *lacking, sep="\n    ", flush=True)
        bad += bool(lacking)
    return bad


def run(*argv: str | Path) -> int:
    """A command's exit code, its output shown."""
    return subprocess.run([str(part) for part in argv], cwd=ROOT, check=False).returncode


def newest(tests: Iterable[str]) -> int:
    """Install the newest releases, look at them, and run the tests of the backends with them."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        newer = ("--exclude-newer", "2999-01-01")
        install = ("uv", "pip", "install", "-q", "--python", python, *newer)
        made = run("uv", "venv", "-q", "--python", sys.executable, Path(folder) / "venv")
        if made or run(*install, "--upgrade", *USES, *TESTERS):
            print("the newest SDKs cannot be installed")
            return 1
        # Without what it declares: its ranges must not hold the SDKs back.
        if run(*install, "--no-deps", ROOT / "packages" / "hermes-sandbox"):
            return 1
        if run(python, ROOT / ".ci" / "drift.py", "--look"):
            return 1
        os.environ["HERMES_REQUIRE"] = "docker"
        return run(python, "-m", "pytest", "-q", *tests)


def main() -> int:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--look", action="store_true", help="only look, and at this environment")
    given = parser.parse_args()
    return look() if given.look else newest(TESTS)


if __name__ == "__main__":
    sys.exit(main())
