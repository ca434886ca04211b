"""A local server for the real Modal SDK: the calls that sandboxes need, each sandbox a Docker container.

Two gRPC services on one port, as the SDK's own published bases describe them: the control plane and the router
that commands go through. Every other call answers UNIMPLEMENTED, so a new one that we come to use shows at once.

    python modal_server.py [--port N]

runs it as a program, which prints where it is as a line of JSON and goes on until it is terminated.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import secrets
import shutil
import signal
import tempfile
import time
import uuid
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from grpclib.protocol import H2Protocol
from grpclib.server import Server
from modal_proto import api_pb2
from modal_proto import task_command_router_pb2 as router_pb2
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

TOKEN_ID, TOKEN_SECRET = "ak-local", "as-local"
REGIONS = {"us-east", "eu-west"}
SUCCESS = api_pb2.GenericResult.GENERIC_STATUS_SUCCESS
TERMINATED = api_pb2.GenericResult.GENERIC_STATUS_TERMINATED


async def docker(*argv: str, data: bytes | None = None, check: bool = True) -> str:
    process = await asyncio.create_subprocess_exec(
        "docker",
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(data)
    if check and process.returncode:
        raise GRPCError(Status.INTERNAL, err.decode(errors="replace")[-1000:])
    return out.decode().strip()


@dataclass
class Faults:
    """What shall go wrong, each so many times; tests count these up."""

    unavailable_reads: int = 0
    """Output streams broken off with UNAVAILABLE after their first piece."""
    no_reads: bool = False
    """Whether output streams are refused with UNAVAILABLE."""
    exhausted_creates: int = 0
    """Creations answered with RESOURCE_EXHAUSTED."""
    lost_waits: int = 0
    """Waits for an exit code answered with NOT_FOUND."""
    slow_create: float = 0.0
    """Seconds that every creation takes longer."""
    late_output: float = 0.0
    """Seconds by which standard output comes later than all else."""
    refusals: list[tuple[str, Status]] = field(default_factory=list)
    """Calls to answer with a status instead, each once."""
    creating: int = 0
    most_creating: int = 0
    calls: dict[str, int] = field(default_factory=dict)


class Exec:
    """A command: its process, all it wrote, and how much of its input has come."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = {1: bytearray(), 2: bytearray()}
        self.ended = {1: False, 2: False}
        self.changed = asyncio.Condition()
        self.written = 0
        self.closed = False
        self.code: int | None = None
        assert process.stdout and process.stderr
        self.tasks = [
            asyncio.create_task(self._read(1, process.stdout)),
            asyncio.create_task(self._read(2, process.stderr)),
            asyncio.create_task(self._wait()),
        ]

    async def _read(self, stream: int, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1 << 16):
            async with self.changed:
                self.output[stream] += data
                self.changed.notify_all()
        async with self.changed:
            self.ended[stream] = True
            self.changed.notify_all()

    async def _wait(self) -> None:
        code = await self.process.wait()
        async with self.changed:
            self.code = code
            self.changed.notify_all()

    async def write(self, offset: int, data: bytes, eof: bool) -> None:
        new = data[self.written - offset :]
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(new)
            await self.process.stdin.drain()
        self.written += len(new)
        if eof and not self.closed:
            self.closed = True
            self.process.stdin.close()

    async def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await asyncio.gather(*self.tasks)


@dataclass
class Box:
    """One sandbox."""

    id: str
    task: str
    app: str
    container: str
    tags: dict[str, str]
    definition: Any
    created: float = field(default_factory=time.time)
    execs: dict[str, Exec] = field(default_factory=dict)
    result: Any = None
    expiry: asyncio.Task[None] | None = None


def _all_unimplemented(base: type) -> type:
    async def refuse(self: Any, stream: Any) -> None:
        await stream.recv_message()
        raise GRPCError(Status.UNIMPLEMENTED, "the local server does not have this call")

    return type(f"Local{base.__name__}", (base,), dict.fromkeys(base.__abstractmethods__, refuse))  # type: ignore[attr-defined]


class ControlPlane(_all_unimplemented(ModalClientBase)):  # type: ignore[misc]
    def __init__(self, world: "ModalServer") -> None:
        self.world = world

    def __mapping__(self) -> Any:
        return {path: _checked(self.world, path, handler) for path, handler in super().__mapping__().items()}

    async def ClientHello(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(api_pb2.ClientHelloResponse(image_builder_version="2025.06"))

    async def AuthTokenGet(self, stream: Any) -> None:
        await stream.recv_message()
        claims = (
            base64.urlsafe_b64encode(json.dumps({"exp": int(time.time()) + 3600}).encode())
            .decode()
            .rstrip("=")
        )
        await stream.send_message(api_pb2.AuthTokenGetResponse(token=f"e30.{claims}.x"))

    async def EnvironmentGetOrCreate(self, stream: Any) -> None:
        await stream.recv_message()
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        await stream.send_message(
            api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)
        )

    async def AppGetOrCreate(self, stream: Any) -> None:
        request = await stream.recv_message()
        await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id=f"ap-{request.app_name}"))

    async def SecretGetOrCreate(self, stream: Any) -> None:
        request = await stream.recv_message()
        if request.env_dict:
            self.world.secrets[name := f"inline-{uuid.uuid4().hex}"] = dict(request.env_dict)
            await stream.send_message(api_pb2.SecretGetOrCreateResponse(secret_id=f"st-{name}"))
            return
        if request.deployment_name not in self.world.secrets:
            raise GRPCError(Status.NOT_FOUND, f"Secret '{request.deployment_name}' not found")
        await stream.send_message(
            api_pb2.SecretGetOrCreateResponse(secret_id=f"st-{request.deployment_name}")
        )

    async def MountBatchedCheckExistence(self, stream: Any) -> None:
        request = await stream.recv_message()
        missing = [digest for digest in request.sha256_hex_hashes if digest not in self.world.files]
        await stream.send_message(
            api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)
        )

    async def MountPutFile(self, stream: Any) -> None:
        request = await stream.recv_message()
        if request.WhichOneof("data_oneof"):
            self.world.files[request.sha256_hex] = request.data
        exists = request.sha256_hex in self.world.files
        await stream.send_message(api_pb2.MountPutFileResponse(exists=exists))

    async def MountGetOrCreate(self, stream: Any) -> None:
        request = await stream.recv_message()
        id = f"mo-{len(self.world.mounts)}"
        self.world.mounts[id] = {each.filename: each.sha256_hex for each in request.files}
        await stream.send_message(api_pb2.MountGetOrCreateResponse(mount_id=id))

    async def ImageGetOrCreate(self, stream: Any) -> None:
        request = await stream.recv_message()
        image_id = await self.world.build(request.image)
        response = api_pb2.ImageGetOrCreateResponse(image_id=image_id)
        if image_id in self.world.broken:
            result = api_pb2.GenericResult.GENERIC_STATUS_FAILURE
            response.result.CopyFrom(
                api_pb2.GenericResult(status=result, exception=self.world.broken[image_id])
            )
        else:
            response.result.CopyFrom(api_pb2.GenericResult(status=SUCCESS))
        await stream.send_message(response)

    async def ImageFromId(self, stream: Any) -> None:
        request = await stream.recv_message()
        if request.image_id not in self.world.images:
            raise GRPCError(Status.NOT_FOUND, f"no image {request.image_id}")
        await stream.send_message(api_pb2.ImageFromIdResponse(image_id=request.image_id))

    async def ImageDelete(self, stream: Any) -> None:
        request = await stream.recv_message()
        if self.world.images.pop(request.image_id, None) is None:
            raise GRPCError(Status.NOT_FOUND, f"no image {request.image_id}")
        await stream.send_message(Empty())

    async def SandboxCreateV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        box = await self.world.create(request)
        access = api_pb2.CommandRouterAccess(url=self.world.url, jwt="e30.e30.x")
        await stream.send_message(
            api_pb2.SandboxCreateV2Response(sandbox_id=box.id, task_id=box.task, command_router_access=access)
        )

    async def SandboxGetTaskIdV2(self, stream: Any) -> None:
        box = self.world.box((await stream.recv_message()).sandbox_id)
        response = api_pb2.SandboxGetTaskIdResponse(task_id=box.task)
        if box.result is not None:
            response.task_result.CopyFrom(box.result)
        await stream.send_message(response)

    async def SandboxGetCommandRouterAccess(self, stream: Any) -> None:
        request = await stream.recv_message()
        box = self.world.box(request.sandbox_id or self.world.tasks.get(request.task_id, ""))
        if box.result is not None:
            raise GRPCError(Status.NOT_FOUND, "the sandbox has finished")
        await stream.send_message(
            api_pb2.SandboxGetCommandRouterAccessResponse(url=self.world.url, jwt="e30.e30.x")
        )

    async def SandboxWaitV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        box = self.world.box(request.sandbox_id)
        deadline = time.monotonic() + request.timeout
        while box.result is None and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        await self.world.look(box)
        response = api_pb2.SandboxWaitResponse()
        if box.result is not None:
            response.result.CopyFrom(box.result)
        await stream.send_message(response)

    async def SandboxTerminateV2(self, stream: Any) -> None:
        box = self.world.box((await stream.recv_message()).sandbox_id)
        await self.world.terminate(box)
        await stream.send_message(api_pb2.SandboxTerminateResponse())

    async def SandboxListV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        wanted = {tag.tag_name: tag.tag_value for tag in request.tags}
        response = api_pb2.SandboxListResponse()
        for box in self.world.boxes.values():
            older = not request.before_timestamp or box.created < request.before_timestamp
            mine = not request.app_id or request.app_id == box.app
            if (
                older
                and mine
                and wanted.items() <= box.tags.items()
                and (box.result is None or request.include_finished)
            ):
                tags = [api_pb2.SandboxTag(tag_name=key, tag_value=value) for key, value in box.tags.items()]
                info = api_pb2.SandboxInfo(id=box.id, created_at=box.created, app_id=box.app, tags=tags)
                info.task_info.CopyFrom(api_pb2.TaskInfo(id=box.task, started_at=box.created))
                response.sandboxes.append(info)
        await stream.send_message(response)

    async def SandboxTagsGetV2(self, stream: Any) -> None:
        box = self.world.box((await stream.recv_message()).sandbox_id)
        tags = [api_pb2.SandboxTag(tag_name=key, tag_value=value) for key, value in box.tags.items()]
        await stream.send_message(api_pb2.SandboxTagsGetResponse(tags=tags))

    async def SandboxTagsSetV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        self.world.box(request.sandbox_id).tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        await stream.send_message(Empty())

    # What has a GPU is of the first generation still: other calls, and ids of another shape.

    async def SandboxCreate(self, stream: Any) -> None:
        box = await self.world.create(await stream.recv_message(), secrets.token_hex(11))
        await stream.send_message(api_pb2.SandboxCreateResponse(sandbox_id=box.id))

    async def TaskGetCommandRouterAccess(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(
            api_pb2.TaskGetCommandRouterAccessResponse(url=self.world.url, jwt="e30.e30.x")
        )

    SandboxGetTaskId = SandboxGetTaskIdV2
    SandboxWait = SandboxWaitV2
    SandboxTerminate = SandboxTerminateV2
    SandboxTagsGet = SandboxTagsGetV2


class Router(_all_unimplemented(TaskCommandRouterBase)):  # type: ignore[misc]
    def __init__(self, world: "ModalServer") -> None:
        self.world = world

    def __mapping__(self) -> Any:
        return {path: _checked(self.world, path, handler) for path, handler in super().__mapping__().items()}

    def _exec(self, request: Any) -> Exec:
        box = self.world.box(self.world.tasks.get(request.task_id, ""))
        if box.result is not None:
            raise GRPCError(Status.NOT_FOUND, "the sandbox has finished")
        if request.exec_id not in box.execs:
            raise GRPCError(Status.NOT_FOUND, f"no exec {request.exec_id}")
        return box.execs[request.exec_id]

    async def TaskExecStart(self, stream: Any) -> None:
        request = await stream.recv_message()
        box = self.world.box(self.world.tasks.get(request.task_id, ""))
        if not await self.world.look(box):
            raise GRPCError(Status.NOT_FOUND, "the sandbox has finished")
        if request.exec_id not in box.execs:
            box.execs[request.exec_id] = await self._start(box, request)
        await stream.send_message(router_pb2.TaskExecStartResponse())

    async def _start(self, box: Box, request: Any) -> Exec:
        argv = ["docker", "exec", "-i"]
        if request.workdir:
            argv += ["-w", request.workdir]
        for source in request.secret_sources:
            for key, value in source.env.contents.items():
                argv += ["-e", f"{key}={value}"]
        process = await asyncio.create_subprocess_exec(
            *argv,
            box.container,
            *request.command_args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return Exec(process)

    async def TaskExecStdioRead(self, stream: Any) -> None:
        request = await stream.recv_message()
        started = self._exec(request)
        which = 1 if request.file_descriptor == router_pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT else 2
        offset = request.offset
        while True:
            if self.world.faults.no_reads:
                raise GRPCError(Status.UNAVAILABLE, "injected")
            async with started.changed:
                while len(started.output[which]) <= offset and not started.ended[which]:
                    await started.changed.wait()
                data = bytes(started.output[which][offset : offset + (1 << 16)])
            await asyncio.sleep(self.world.faults.late_output if which == 1 else 0)
            if not data:
                return
            offset += len(data)
            await stream.send_message(router_pb2.TaskExecStdioReadResponse(data=data))
            if self.world.faults.unavailable_reads:
                self.world.faults.unavailable_reads -= 1
                raise GRPCError(Status.UNAVAILABLE, "injected")

    async def TaskExecStdinWrite(self, stream: Any) -> None:
        request = await stream.recv_message()
        await self._exec(request).write(request.offset, request.data, request.eof)
        await stream.send_message(router_pb2.TaskExecStdinWriteResponse())

    async def TaskExecStdinStatus(self, stream: Any) -> None:
        started = self._exec(await stream.recv_message())
        await stream.send_message(
            router_pb2.TaskExecStdinStatusResponse(num_bytes_written=started.written, closed=started.closed)
        )

    async def TaskExecPoll(self, stream: Any) -> None:
        started = self._exec(await stream.recv_message())
        response = router_pb2.TaskExecPollResponse()
        if started.code is not None:
            response.code = started.code
        await stream.send_message(response)

    async def TaskExecWait(self, stream: Any) -> None:
        request = await stream.recv_message()
        started = self._exec(request)
        async with started.changed:
            while started.code is None:
                await started.changed.wait()
        if self.world.faults.lost_waits:
            self.world.faults.lost_waits -= 1
            raise GRPCError(Status.NOT_FOUND, "injected: the exit code is lost")
        await stream.send_message(router_pb2.TaskExecWaitResponse(code=started.code))

    async def TaskSnapshotFilesystem(self, stream: Any) -> None:
        request = await stream.recv_message()
        box = self.world.box(self.world.tasks.get(request.task_id, ""))
        id = f"im-{uuid.uuid4().hex[:20]}"
        self.world.images[id] = await docker("commit", box.container)
        self.world.made.append(self.world.images[id])
        await stream.send_message(router_pb2.TaskSnapshotFilesystemResponse(image_id=id))


def _checked(world: "ModalServer", path: str, handler: Any) -> Any:
    """Refuse a wrong token, and count calls."""
    name = path.rpartition("/")[2]

    async def call(stream: Any) -> None:
        world.faults.calls[name] = world.faults.calls.get(name, 0) + 1
        given = stream.metadata.get("x-modal-token-secret")
        if given is not None and given != TOKEN_SECRET:
            raise GRPCError(Status.UNAUTHENTICATED, "Token validation failed")
        for number, (refused, status) in enumerate(world.faults.refusals):
            if refused == name:
                del world.faults.refusals[number]
                raise GRPCError(status, f"injected: {status.name}")
        await handler.func(stream)

    return handler._replace(func=call)


class ModalServer:
    """What exists at the service.

    Attributes:
        label: On every container made, so that those of a killed server can be found.
    """

    def __init__(self, label: str = "") -> None:
        self.label = label or uuid.uuid4().hex
        self.faults = Faults()
        self.secrets = {"good-secret": {"SECRET": "value"}}
        self.files: dict[str, bytes] = {}
        self.mounts: dict[str, dict[str, str]] = {}
        self.images: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.builds: dict[str, asyncio.Task[None]] = {}
        self.built = 0
        self.made: list[str] = []
        self.boxes: dict[str, Box] = {}
        self.tasks: dict[str, str] = {}
        self.url = ""

    def box(self, id: str) -> Box:
        if id not in self.boxes:
            raise GRPCError(Status.NOT_FOUND, f"Sandbox {id!r} not found")
        return self.boxes[id]

    async def build(self, image: Any) -> str:
        commands = [line for line in image.dockerfile_commands if not line.startswith("#")]
        bases = {each.docker_tag: each.image_id for each in image.base_images}
        key = hashlib.sha256(image.SerializeToString(deterministic=True)).hexdigest()[:20]
        id = f"im-{key}"
        if id not in self.builds:
            self.builds[id] = asyncio.create_task(self._build(id, commands, bases, image.context_mount_id))
        await self.builds[id]
        return id

    async def _build(self, id: str, commands: list[str], bases: dict[str, str], mount: str) -> None:
        self.built += 1
        lines = []
        for line in commands:
            for tag, base in bases.items():
                line = line.replace(f"FROM {tag}", f"FROM {self.images[base]}")
            lines.append(line)
        folder = Path(tempfile.mkdtemp())
        try:
            for name, digest in self.mounts.get(mount, {}).items():
                path = folder / name.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.files[digest])
            (folder / "Dockerfile.local").write_text("\n".join(lines))
            tag = f"hermes-test-modal:{uuid.uuid4().hex}"
            file = str(folder / "Dockerfile.local")
            await docker("build", "-q", "--force-rm", "-t", tag, "-f", file, str(folder))
            self.made.append(tag)
            self.images[id] = tag
        except GRPCError as error:
            self.broken[id] = str(error.message)
        finally:
            shutil.rmtree(folder)

    async def create(self, request: Any, name: str = "") -> Box:
        faults = self.faults
        faults.creating += 1
        faults.most_creating = max(faults.most_creating, faults.creating)
        try:
            if faults.exhausted_creates:
                faults.exhausted_creates -= 1
                raise GRPCError(Status.RESOURCE_EXHAUSTED, "injected: too many sandboxes")
            await asyncio.sleep(faults.slow_create)
            return await self._create(request, name or uuid.uuid4().hex)
        finally:
            faults.creating -= 1

    async def _create(self, request: Any, name: str) -> Box:
        definition = request.definition
        regions = set(definition.scheduler_placement.regions)
        if not regions <= REGIONS:
            raise GRPCError(Status.INVALID_ARGUMENT, f"Unknown region {sorted(regions - REGIONS)}")
        argv = [
            "run",
            "-d",
            "--init",
            "--label",
            "hermes-test=modal",
            "--label",
            f"hermes-server={self.label}",
        ]
        if definition.network_access.network_access_type == api_pb2.NetworkAccess.BLOCKED:
            argv += ["--network", "none"]
        resources = definition.resources
        if resources.memory_mb_max:
            argv += [
                "--memory",
                f"{resources.memory_mb_max}m",
                "--memory-swap",
                f"{resources.memory_mb_max}m",
            ]
        if resources.milli_cpu_max:
            argv += ["--cpus", str(resources.milli_cpu_max / 1000)]
        if definition.workdir:
            argv += ["-w", definition.workdir]
        variables_of = [self.secrets[id.removeprefix("st-")] for id in definition.secret_ids]
        if isinstance(request, api_pb2.SandboxCreateV2Request):
            variables_of += [dict(each.env.contents) for each in request.secret_sources if each.env.contents]
        for variables in variables_of:
            for key, value in variables.items():
                argv += ["-e", f"{key}={value}"]
        command = list(definition.entrypoint_args) or ["sleep", "infinity"]
        container = await docker(*argv, self.images[definition.image_id], *command)
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        box = Box(f"sb-{name}", f"ta-{uuid.uuid4().hex}", request.app_id, container, tags, definition)
        self.boxes[box.id], self.tasks[box.task] = box, box.id
        box.expiry = asyncio.create_task(self._expire(box))
        return box

    async def _expire(self, box: Box) -> None:
        await asyncio.sleep(box.definition.timeout_secs)
        await self.terminate(box, api_pb2.GenericResult.GENERIC_STATUS_TIMEOUT)

    async def look(self, box: Box) -> bool:
        """Whether it still runs."""
        if (
            box.result is None
            and await docker("inspect", "-f", "{{.State.Running}}", box.container, check=False) != "true"
        ):
            box.result = api_pb2.GenericResult(status=TERMINATED)
        return box.result is None

    async def terminate(self, box: Box, status: Any = TERMINATED) -> None:
        if box.result is None:
            box.result = api_pb2.GenericResult(status=status)
            await docker("rm", "-f", box.container, check=False)

    async def close(self) -> None:
        for box in self.boxes.values():
            if box.expiry:
                box.expiry.cancel()
            await self.terminate(box)
            await asyncio.gather(*(started.close() for started in box.execs.values()))
        for image in self.made:
            await docker("rmi", "-f", image, check=False)


class _Server(Server):
    """The library's, which at its end also hangs up on clients that are there still."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._protocols: weakref.WeakSet[H2Protocol] = weakref.WeakSet()

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self._protocols.add(protocol)
        return protocol

    def close(self) -> None:
        super().close()
        for protocol in list(self._protocols):
            if hasattr(protocol, "connection"):
                protocol.connection.close()


@contextlib.asynccontextmanager
async def running_modal_server(port: int = 0, label: str = "") -> AsyncIterator[ModalServer]:
    world = ModalServer(label)
    server = _Server([ControlPlane(world), Router(world)])
    await server.start("127.0.0.1", port)
    world.url = f"http://127.0.0.1:{server._server.sockets[0].getsockname()[1]}"  # type: ignore[union-attr]
    try:
        yield world
    finally:
        await world.close()
        server.close()
        await server.wait_closed()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", help="unused; as for the other service")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--label", default="")
    given = parser.parse_args()
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with running_modal_server(given.port, given.label) as world:
        environment = {"MODAL_SERVER_URL": world.url, "MODAL_CONFIG_PATH": "/nonexistent"}
        environment |= {"MODAL_TOKEN_ID": TOKEN_ID, "MODAL_TOKEN_SECRET": TOKEN_SECRET}
        print(json.dumps({"env": environment, "under": [], "label": world.label}), flush=True)
        await end.wait()


if __name__ == "__main__":
    asyncio.run(main())
