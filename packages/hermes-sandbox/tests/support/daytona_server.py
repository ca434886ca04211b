"""A local server for the real Daytona SDK: the requests that sandboxes need, each sandbox a Docker container.

    python daytona_server.py --folder DIR [--port N]

runs it as a program, which prints where it is as a line of JSON and goes on until it is terminated.

The SDK sends a Dockerfile's context to object storage, over TLS alone and to a server whose certificate the system
trusts. So the storage here has a certificate of its own, and a client that is to build runs under `trusting`.
"""

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import posixpath
import shutil
import signal
import ssl
import subprocess
import tarfile
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

API_KEY = "dtn-local"
FORMERLY = "Thu, 01 Jan 2026 00:00:00 GMT"
STDOUT, STDERR = b"\x01\x01\x01", b"\x02\x02\x02"


async def docker(*argv: str, check: bool = True) -> str:
    process = await asyncio.create_subprocess_exec(
        "docker", *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if check and process.returncode:
        raise RuntimeError(err.decode(errors="replace")[-1000:])
    return out.decode().strip()


@dataclass
class Faults:
    """What shall go wrong, each so many times; tests count these up."""

    rate_limited_creates: int = 0
    refusals: list[tuple[str, int, str]] = field(default_factory=list)
    """Requests to refuse, each once: a part of `METHOD /path`, a status and a message."""
    cut_logs: int = 0
    """Logs broken off after their first piece."""
    loose_bytes: int = 0
    """Bytes of each piece of a log that come as a message of their own."""
    late_output: float = 0.0
    """Seconds by which standard output comes later than standard error."""
    slow_create: float = 0.0
    """Seconds that every creation takes longer."""
    creating: int = 0
    most_creating: int = 0
    calls: dict[str, int] = field(default_factory=dict)


class Running:
    """A session's command: its process and what it wrote, in the order of the log."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log: list[bytes] = []
        self.readers = 2
        self.changed = asyncio.Condition()
        assert process.stdout and process.stderr
        self.tasks = [
            asyncio.create_task(self._read(STDOUT, process.stdout)),
            asyncio.create_task(self._read(STDERR, process.stderr)),
        ]

    async def _read(self, prefix: bytes, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1 << 16):
            async with self.changed:
                text = data.decode(errors="replace").encode()  # the service's log is text
                self.log.append(prefix + text)
                self.changed.notify_all()
        async with self.changed:
            self.readers -= 1
            self.changed.notify_all()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def close(self) -> None:
        self.kill()
        await asyncio.gather(self.process.wait(), *self.tasks)


@dataclass
class Box:
    """One sandbox."""

    id: str
    container: str
    request: dict[str, Any]
    state: str = "started"
    sessions: dict[str, dict[str, Running]] = field(default_factory=dict)
    created: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)

    def described(self, url: str) -> dict[str, Any]:
        request = self.request
        return {
            "id": self.id,
            "organizationId": "org",
            "name": self.id,
            "user": "root",
            "env": request.get("env") or {},
            "labels": request.get("labels") or {},
            "public": False,
            "networkBlockAll": bool(request.get("networkBlockAll")),
            "kvm": False,
            "target": "local",
            "cpu": request.get("cpu") or 1,
            "gpu": 0,
            "memory": request.get("memory") or 1,
            "disk": request.get("disk") or 1,
            "state": self.state,
            "autoStopInterval": request.get("autoStopInterval"),
            "autoDeleteInterval": request.get("autoDeleteInterval"),
            "toolboxProxyUrl": f"{url}/toolbox",
        }


@dataclass
class Saved:
    """A snapshot: an image, and the limits of the sandbox it was taken from."""

    name: str
    image: str
    request: dict[str, Any]
    source: str | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def described(self) -> dict[str, Any]:
        limits = {"cpu": self.request.get("cpu") or 1, "mem": self.request.get("memory") or 1}
        now = "2026-01-01T00:00:00Z"
        return limits | {
            "id": self.id,
            "general": False,
            "name": self.name,
            "state": "active",
            "size": 0.1,
            "entrypoint": None,
            "gpu": 0,
            "disk": self.request.get("disk") or 1,
            "errorReason": None,
            "createdAt": now,
            "updatedAt": now,
            "lastUsedAt": None,
            "sourceSandboxId": self.source,
        }


class DaytonaServer:
    """What exists at the service.

    Attributes:
        minute: Seconds that a minute of a sandbox's limits takes.
        label: On every container made, so that those of a killed server can be found.
    """

    def __init__(self, label: str = "") -> None:
        self.faults = Faults()
        self.boxes: dict[str, Box] = {}
        self.snapshots: dict[str, Saved] = {}
        self.stored: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.builds: dict[str, asyncio.Task[str]] = {}
        self.begun: list[Running] = []
        self.made: list[str] = []
        self.built = 0
        self.url = ""
        self.storage_url = ""
        self.certificate = Path()
        self.minute = 60.0
        self.label = label or uuid.uuid4().hex

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._gate], client_max_size=64 << 20)
        box, session = "/toolbox/{box}", "/toolbox/{box}/process/session"
        app.add_routes(
            [
                web.post("/api/sandbox", self.create),
                web.get("/api/sandbox", self.list),
                web.get("/api/sandbox/{box}", self.get),
                web.delete("/api/sandbox/{box}", self.delete),
                web.post("/api/sandbox/{box}/stop", self.stop),
                web.post("/api/sandbox/{box}/start", self.start),
                web.post("/api/sandbox/{box}/autodelete/{interval}", self.auto_delete),
                web.post("/api/sandbox/{box}/last-activity", self.touch),
                web.post("/api/sandbox/{box}/snapshot", self.snapshot),
                web.get("/api/snapshots", self.list_snapshots),
                web.get("/api/snapshots/{name}", self.get_snapshot),
                web.delete("/api/snapshots/{name}", self.delete_snapshot),
                web.get("/api/object-storage/push-access", self.push_access),
                web.post(session, self.create_session),
                web.delete(session + "/{session}", self.delete_session),
                web.post(session + "/{session}/exec", self.execute),
                web.get(session + "/{session}/command/{command}/logs", self.logs),
                web.post(session + "/{session}/command/{command}/input", self.input),
                web.get(box + "/work-dir", self.work_dir),
                web.post(box + "/process/execute", self.execute_once),
                web.post(box + "/files/bulk-upload", self.bulk_upload),
                web.post(box + "/files/bulk-download", self.bulk_download),
                web.delete(box + "/files", self.remove_file),
            ]
        )
        return app

    def storage(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.add_routes(
            [
                web.head("/{key:.+}", self.stored_head),
                web.put("/{key:.+}", self.stored_put),
                web.post("/{key:.+}", self.stored_post),
            ]
        )
        return app

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.path.startswith("/api/socket") or request.path.startswith("/socket.io"):
            return web.json_response({"message": "polling only"}, status=404)
        if request.headers.get("Authorization") != f"Bearer {API_KEY}":
            return web.json_response({"message": "Unauthorized", "statusCode": 401}, status=401)
        what = f"{request.method} {request.path}"
        name = getattr(handler, "__name__", "")
        self.faults.calls[name] = self.faults.calls.get(name, 0) + 1
        for number, (part, status, message) in enumerate(self.faults.refusals):
            if part in what:
                del self.faults.refusals[number]
                return web.json_response({"message": message}, status=status)
        try:
            return await handler(request)
        except KeyError as missing:
            return web.json_response({"message": f"{missing} not found", "statusCode": 404}, status=404)

    def _box(self, request: web.Request) -> Box:
        box = self.boxes[request.match_info["box"]]
        if request.path.startswith("/toolbox"):
            box.used = time.monotonic()
        return box

    async def create(self, request: web.Request) -> web.Response:
        faults = self.faults
        faults.creating += 1
        faults.most_creating = max(faults.most_creating, faults.creating)
        try:
            if faults.rate_limited_creates:
                faults.rate_limited_creates -= 1
                return web.json_response({"message": "injected: too many requests"}, status=429)
            await asyncio.sleep(faults.slow_create)
            wanted = await request.json()
            try:
                box = await self._create(wanted)
            except RuntimeError as error:
                return web.json_response({"message": f"image build failed: {error}"}, status=400)
            return web.json_response(box.described(self.url))
        finally:
            faults.creating -= 1

    async def _create(self, wanted: dict[str, Any]) -> Box:
        image = "hermes-test:bookworm"
        if name := wanted.get("snapshot"):
            saved = self._saved(name)
            image, limits = saved.image, {key: saved.request.get(key) for key in ("cpu", "memory", "disk")}
            wanted = wanted | limits
        elif info := wanted.get("buildInfo"):
            image = await self._built(info["dockerfileContent"], info.get("contextHashes") or [])
        argv = [
            "run",
            "-d",
            "--init",
            "--label",
            "hermes-test=daytona",
            "--label",
            f"hermes-server={self.label}",
        ]
        if wanted.get("networkBlockAll"):
            argv += ["--network", "none"]
        if wanted.get("cpu"):
            argv += ["--cpus", str(wanted["cpu"])]
        if wanted.get("memory"):
            argv += ["--memory", f"{wanted['memory']}g", "--memory-swap", f"{wanted['memory']}g"]
        for key, value in (wanted.get("env") or {}).items():
            argv += ["-e", f"{key}={value}"]
        container = await docker(*argv, image, "sleep", "infinity")
        box = Box(uuid.uuid4().hex, container, wanted)
        self.boxes[box.id] = box
        return box

    async def _built(self, dockerfile: str, contexts: list[str]) -> str:
        """The image of a Dockerfile; equal ones are built once."""
        key = hashlib.sha256("\n".join([dockerfile, *contexts]).encode()).hexdigest()
        if key not in self.builds or (self.builds[key].done() and self.builds[key].exception()):
            self.builds[key] = asyncio.create_task(self._build(dockerfile, contexts))
        return await asyncio.shield(self.builds[key])

    async def _build(self, dockerfile: str, contexts: list[str]) -> str:
        self.built += 1
        folder = Path(tempfile.mkdtemp())
        try:
            for digest in contexts:
                stored = next(data for key, data in self.stored.items() if digest in key)
                with tarfile.open(fileobj=io.BytesIO(stored)) as tar:
                    tar.extractall(folder, filter="fully_trusted")
            (folder / "Dockerfile").write_text(dockerfile)
            tag = f"hermes-test-daytona:{uuid.uuid4().hex}"
            await docker("build", "-q", "--force-rm", "-t", tag, str(folder))
            self.made.append(tag)
            return tag
        finally:
            shutil.rmtree(folder)

    async def watch(self) -> None:
        """Stop what was idle for too long and destroy what lived for too long, as the service does."""
        while True:
            await asyncio.sleep(0.05)
            now = time.monotonic()
            for box in list(self.boxes.values()):
                lives, idles = box.request.get("ttlMinutes"), box.request.get("autoStopInterval")
                if lives and now > box.created + lives * self.minute:
                    await self._remove(box)
                elif idles and box.state == "started" and now > box.used + idles * self.minute:
                    await self._stop(box)

    async def list(self, request: web.Request) -> web.Response:
        wanted = json.loads(request.query.get("labels") or "{}")
        found = [
            box for box in self.boxes.values() if wanted.items() <= (box.request.get("labels") or {}).items()
        ]
        return web.json_response({"items": [box.described(self.url) for box in found], "nextCursor": None})

    async def get(self, request: web.Request) -> web.Response:
        box = self._box(request)
        running = await docker("inspect", "-f", "{{.State.Running}}", box.container, check=False)
        if box.state == "started" and running != "true":
            box.state = "error"
        return web.json_response(box.described(self.url))

    async def delete(self, request: web.Request) -> web.Response:
        box = self._box(request)
        await self._remove(box)
        return web.json_response(box.described(self.url) | {"state": "destroyed"})

    async def _remove(self, box: Box) -> None:
        self.boxes.pop(box.id, None)
        await docker("rm", "-f", box.container, check=False)

    async def stop(self, request: web.Request) -> web.Response:
        box = self._box(request)
        await self._stop(box)
        return web.json_response(box.described(self.url))

    async def _stop(self, box: Box) -> None:
        if box.request.get("autoDeleteInterval") == 0:
            box.state = "destroyed"
            await self._remove(box)
        else:
            await docker("stop", "-t", "1", box.container)
            box.state = "stopped"

    async def auto_delete(self, request: web.Request) -> web.Response:
        box = self._box(request)
        box.request["autoDeleteInterval"] = int(request.match_info["interval"])
        return web.json_response(box.described(self.url))

    async def touch(self, request: web.Request) -> web.Response:
        self._box(request).used = time.monotonic()
        return web.Response(status=201)

    def _saved(self, name: str) -> Saved:
        return (
            next((each for each in self.snapshots.values() if name in (each.name, each.id)), None) or {}[name]
        )

    async def snapshot(self, request: web.Request) -> web.Response:
        box, name = self._box(request), (await request.json())["name"]
        image = await docker("commit", box.container)
        self.snapshots[name] = Saved(name, image, box.request, box.id)
        return web.json_response(box.described(self.url))

    async def list_snapshots(self, request: web.Request) -> web.Response:
        page, limit = int(request.query.get("page", 1)), int(request.query.get("limit", 100))
        found = [each.described() for each in self.snapshots.values()]
        items, pages = found[(page - 1) * limit : page * limit], -(-len(found) // limit)
        return web.json_response({"items": items, "total": len(found), "page": page, "totalPages": pages})

    async def get_snapshot(self, request: web.Request) -> web.Response:
        return web.json_response(self._saved(request.match_info["name"]).described())

    async def delete_snapshot(self, request: web.Request) -> web.Response:
        saved = self.snapshots.pop(self._saved(request.match_info["name"]).name)
        await docker("rmi", "-f", saved.image, check=False)
        return web.Response(status=200)

    async def push_access(self, request: web.Request) -> web.Response:
        access = {"accessKey": "key", "secret": "secret", "sessionToken": "session", "bucket": "contexts"}
        return web.json_response(
            access | {"storageUrl": self.storage_url, "organizationId": "org", "region": "local"}
        )

    async def stored_head(self, request: web.Request) -> web.Response:
        data = self.stored.get(request.match_info["key"])
        if data is None:
            return web.Response(status=404)
        return web.Response(
            headers={"ETag": '"1"', "Last-Modified": FORMERLY, "Content-Length": str(len(data))}
        )

    async def stored_put(self, request: web.Request) -> web.Response:
        key, upload = request.match_info["key"], request.query.get("uploadId")
        if upload:
            self.parts[upload][int(request.query["partNumber"])] = await request.read()
        else:
            self.stored[key] = await request.read()
        return web.Response(headers={"ETag": '"1"'})

    async def stored_post(self, request: web.Request) -> web.Response:
        key, upload = request.match_info["key"], request.query.get("uploadId")
        if upload:
            parts = self.parts.pop(upload)
            self.stored[key] = b"".join(parts[number] for number in sorted(parts))
            kind, fields = "CompleteMultipartUploadResult", {"Key": key, "ETag": "1"}
        else:
            self.parts[upload := uuid.uuid4().hex] = {}
            kind, fields = "InitiateMultipartUploadResult", {"Key": key, "UploadId": upload}
        body = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
        return web.Response(text=f"<{kind}>{body}</{kind}>", content_type="application/xml")

    async def bulk_upload(self, request: web.Request) -> web.Response:
        box, path = self._box(request), ""
        async for part in await request.multipart():
            if (part.name or "").endswith(".path"):
                path = await part.text()
                continue
            folder = posixpath.dirname(path) or "."
            argv = ("sh", "-c", 'mkdir -p "$1" && cat >"$2"', "sh", folder, path)
            process = await asyncio.create_subprocess_exec(
                "docker", "exec", "-i", box.container, *argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert process.stdin and process.stderr
            while data := await part.read_chunk(1 << 18):
                with contextlib.suppress(ConnectionError):
                    process.stdin.write(data)
                    await process.stdin.drain()
            process.stdin.close()
            said = await process.stderr.read()
            if await process.wait():
                return web.json_response({"errors": [said.decode(errors="replace").strip()]}, status=400)
        return web.json_response({})

    async def remove_file(self, request: web.Request) -> web.Response:
        await docker("exec", self._box(request).container, "rm", "-f", request.query["path"])
        return web.Response(status=204)

    async def bulk_download(self, request: web.Request) -> web.StreamResponse:
        box, boundary = self._box(request), uuid.uuid4().hex
        answer = web.StreamResponse(headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
        await answer.prepare(request)
        for path in (await request.json())["paths"]:
            process = await asyncio.create_subprocess_exec(
                *("docker", "exec", box.container, "cat", path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stdout and process.stderr
            data = await process.stdout.read(1 << 18)
            kind = "file" if data or not await process.wait() else "error"
            disposition = f'form-data; name="{kind}"; filename="{path}"'
            head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\n\r\n"
            await answer.write(head.encode())
            while data:
                await answer.write(data)
                data = await process.stdout.read(1 << 18)
            if kind == "error":
                await answer.write(await process.stderr.read())
            await answer.write(b"\r\n")
        await answer.write(f"--{boundary}--\r\n".encode())
        await answer.write_eof()
        return answer

    async def start(self, request: web.Request) -> web.Response:
        box = self._box(request)
        await docker("start", box.container)
        box.state = "started"
        return web.json_response(box.described(self.url))

    async def create_session(self, request: web.Request) -> web.Response:
        self._box(request).sessions[(await request.json())["sessionId"]] = {}
        return web.Response(status=201)

    async def delete_session(self, request: web.Request) -> web.Response:
        for running in self._box(request).sessions.pop(request.match_info["session"]).values():
            running.kill()
        return web.Response(status=204)

    async def execute(self, request: web.Request) -> web.Response:
        box = self._box(request)
        session = box.sessions[request.match_info["session"]]
        wanted = await request.json()
        process = await asyncio.create_subprocess_exec(
            *("docker", "exec", "-i", box.container, "sh", "-c", wanted["command"]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        command = uuid.uuid4().hex
        session[command] = running = Running(process)
        self.begun.append(running)
        return web.json_response({"cmdId": command}, status=202)

    async def execute_once(self, request: web.Request) -> web.Response:
        """The call with merged text that the adapter does without; to measure against."""
        box, command = self._box(request), (await request.json())["command"]
        process = await asyncio.create_subprocess_exec(
            *("docker", "exec", box.container, "sh", "-c", command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        return web.json_response({"exitCode": process.returncode, "result": out.decode(errors="replace")})

    def _running(self, request: web.Request) -> Running:
        return self._box(request).sessions[request.match_info["session"]][request.match_info["command"]]

    async def input(self, request: web.Request) -> web.Response:
        running = self._running(request)
        assert running.process.stdin
        try:
            running.process.stdin.write((await request.json())["data"].encode())
            await running.process.stdin.drain()
        except (OSError, RuntimeError):
            return web.json_response({"message": "the command has completed"}, status=410)
        return web.Response(status=204)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        running = self._running(request)
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        answering = asyncio.create_task(_answer_pings(socket))
        try:
            await self._send_log(running, socket)
        finally:
            answering.cancel()
        return socket

    async def _send_log(self, running: Running, socket: web.WebSocketResponse) -> None:
        position = 0
        while not socket.closed:
            async with running.changed:
                while position >= len(running.log) and running.readers:
                    await running.changed.wait()
                pieces = running.log[position:]
            if not pieces:
                break
            for piece in pieces:
                await asyncio.sleep(self.faults.late_output if piece.startswith(STDOUT) else 0)
                for message in _split(piece, self.faults.loose_bytes):
                    await socket.send_bytes(message)
                if self.faults.cut_logs:
                    self.faults.cut_logs -= 1
                    await socket.close(code=1011, message=b"injected")
                    return
            position += len(pieces)
        with contextlib.suppress(ConnectionError):
            await socket.close()

    async def work_dir(self, request: web.Request) -> web.Response:
        self._box(request)
        return web.json_response({"dir": "/"})

    async def close(self) -> None:
        for box in list(self.boxes.values()):
            await self._remove(box)
        await asyncio.gather(*(running.close() for running in self.begun))
        for image in (*self.made, *(saved.image for saved in self.snapshots.values())):
            await docker("rmi", "-f", image, check=False)


def _split(piece: bytes, loose: int) -> list[bytes]:
    """A piece of a log as messages, the last of them with only `loose` bytes."""
    prefix, text = piece[: len(STDOUT)], piece[len(STDOUT) :]
    if not 0 < loose < len(text):
        return [piece]
    return [prefix + text[:-loose], prefix + text[-loose:]]


async def _answer_pings(socket: web.WebSocketResponse) -> None:
    """Reading is what makes the library answer them."""
    with contextlib.suppress(Exception):
        async for _ in socket:
            continue


def make_certificate(folder: Path) -> Path:
    """A key and a certificate for 127.0.0.1 in one file."""
    file = folder / "storage.pem"
    argv = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "3650",
        "-subj",
        "/CN=127.0.0.1",
    ]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    made = subprocess.run(
        [*argv, "-keyout", str(file), "-out", "/dev/stdout"], capture_output=True, text=True, check=True
    )
    with file.open("a") as out:
        out.write(made.stdout)
    return file


def trusting(certificate: Path, argv: list[str]) -> list[str]:
    """A command line that runs `argv` with a certificate among the system's own, in a view of the files of its own."""
    script = (
        'store=/etc/ssl/certs/ca-certificates.crt; bundle=$(mktemp); cat "$store" "$1" >"$bundle"; '
        'mount --bind "$bundle" "$store" && rm -f "$bundle"; shift; exec "$@"'
    )
    return ["unshare", "-m", "sh", "-c", script, "trusting", str(certificate), *argv]


@contextlib.asynccontextmanager
async def running_daytona_server(
    port: int = 0, certificate: Path | None = None, label: str = ""
) -> AsyncIterator[DaytonaServer]:
    """The server, with object storage where there is a certificate for it."""
    server = DaytonaServer(label)
    async with contextlib.AsyncExitStack() as stack:

        async def serve(app: web.Application, port: int, tls: ssl.SSLContext | None) -> int:
            runner = web.AppRunner(app, shutdown_timeout=1.0)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls, reuse_address=True).start()
            return int(runner.addresses[0][1])

        server.url = f"http://127.0.0.1:{await serve(server.app(), port, None)}"
        if certificate is not None:
            server.certificate = certificate
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(certificate)
            server.storage_url = f"https://127.0.0.1:{await serve(server.storage(), 0, tls)}"
        watching = asyncio.create_task(server.watch())
        try:
            yield server
        finally:
            watching.cancel()
            await server.close()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--label", default="")
    given = parser.parse_args()
    certificate = make_certificate(given.folder)
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with running_daytona_server(given.port, certificate, given.label) as server:
        environment = {"DAYTONA_API_URL": f"{server.url}/api", "DAYTONA_API_KEY": API_KEY}
        told = {"env": environment, "under": trusting(certificate, []), "label": server.label}
        print(json.dumps(told), flush=True)
        await end.wait()


__all__ = ["API_KEY", "DaytonaServer", "docker", "make_certificate", "running_daytona_server", "trusting"]

if __name__ == "__main__":
    asyncio.run(main())
