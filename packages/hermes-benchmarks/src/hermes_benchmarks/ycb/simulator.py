"""The simulator's side of one YC-Bench run: makes the world, then answers `yc-bench` commands from a warm process.

A program of its own: it runs inside the sandbox under the Python that has `yc_bench` installed, imports
nothing of ours, and is told everything by its arguments and standard input.

    python simulator.py identify PRESET...   prints which simulator this is, or refuses it by name (exit code 3)
    python simulator.py serve FOLDER         stdin: a line of JSON (see `Settings`), then the harness's requests

Starting Python and importing the simulator costs about a second, which a plain `yc-bench` pays for every
command. Here it is paid once; each command then runs the simulator's own Typer application in process,
so that what it prints is what the plain command prints. The agent's commands come through FOLDER/socket.

The database lives in this process's memory: there is no file that an agent could edit. What the harness asks
and what it is told goes through standard input and output, signed with a secret that only the two know.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import importlib
import importlib.metadata
import importlib.util
import io
import json
import os
import select
import socket
import sqlite3
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

SOCKET = "socket"
FORBIDDEN = {"run": "runs a model loop of its own", "start": "is interactive"}
IDLE_LIMIT = 10_000
LONGEST_REQUEST = 1 << 20
LONGEST_NOTE = 2000
"""Characters of an argument that the journal keeps."""
PAGE = 1 << 20
"""Bytes of the journal in one answer, about."""
REFUSED = 3
"""Exit code of a program that cannot drive the installed simulator."""
COMMITS = {"e80a9af78f24410084e115048f6314107cdeabbae5d66ac89dac7045c3656fba": "f25a2be..89065f3"}
"""Commits of collinear-ai/yc-bench whose sources have this fingerprint, for a release that does not say its own."""


@dataclass(frozen=True)
class Settings:
    """What one run is told.

    Attributes:
        preset: Name of the simulator's preset, or a path of a TOML file.
        seed: Of the world.
        draws: "preset" or "sim_init": where the world's draws come from.
        company: The company's name.
        start_date: ISO date; None takes the preset's.
        horizon_years: None takes the preset's.
        secret: Signs what the harness and this program say to each other.
    """

    preset: str
    seed: int
    company: str
    secret: str
    draws: str = "preset"
    start_date: str | None = None
    horizon_years: int | None = None


class UnsupportedSimulator(Exception):
    """The installed simulator is not one that this program can drive."""


def fingerprint(package: Any) -> str:
    """SHA-256 over the package's sources: the version number alone does not tell two releases apart."""
    root = Path(package.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in {".py", ".toml"}):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def commit_of(distribution: importlib.metadata.Distribution, found: str) -> str:
    """The commit that pip noted when it installed from git, else the one known for these sources."""
    noted = json.loads(distribution.read_text("direct_url.json") or "{}")
    return str(noted.get("vcs_info", {}).get("commit_id") or COMMITS.get(found, "unknown"))


def identify(*presets: str) -> dict[str, str]:
    """Version, commit and fingerprint of the simulator, or a refusal that names them."""
    package = importlib.import_module("yc_bench")
    found = fingerprint(package)
    try:
        distribution = importlib.metadata.distribution("yc-bench")
        version, commit = distribution.version, commit_of(distribution, found)
    except importlib.metadata.PackageNotFoundError:
        version, commit = "unknown", COMMITS.get(found, "unknown")
    name = f"yc-bench {version} ({found[:12]})"
    seeding = importlib.import_module("yc_bench.services.seed_world")
    if "cfg" not in seeding.SeedWorldRequest.__dataclass_fields__:
        raise UnsupportedSimulator(f"{name} cannot seed a preset's own world; install yc-bench 0.1.0")
    if importlib.util.find_spec("yc_bench.cli.client_commands") is not None:
        raise UnsupportedSimulator(
            f"{name} has clients and trust, and no presets: its scores do not compare; install yc-bench 0.1.0 from PyPI"
        )
    for preset in presets:
        try:
            importlib.import_module("yc_bench.config").load_config(preset)
        except (ValueError, OSError) as error:
            raise UnsupportedSimulator(f"{name}: {error}") from error
    return {"version": version, "commit": commit, "fingerprint": found}


def open_database() -> tuple[sqlite3.Connection, Any]:
    """A database in memory, and the SQLAlchemy engine on it that every command is made to use.

    One engine for all commands also keeps the statements that SQLAlchemy compiled.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    pool = importlib.import_module("sqlalchemy.pool").StaticPool
    create = importlib.import_module("sqlalchemy").create_engine
    engine = create("sqlite://", creator=lambda: connection, poolclass=pool)
    commands: Any = importlib.import_module("yc_bench.cli")
    commands.build_engine = lambda: engine
    return connection, engine


def read_presets_once() -> None:
    """Keep what a preset's file says, which the simulator would read again for most commands."""
    config: Any = importlib.import_module("yc_bench.config")
    config.load_config = functools.cache(config.load_config)


def pass_over_ended_tasks() -> None:
    """Where the simulator asks for all assignments of an employee, answer with those to active tasks.

    `task dispatch`, `assign` and `cancel` ask, look up the task of each with a query of its own, and drop it unless it
    is active: what they do stays the same, and no longer takes longer with every task ever done.
    """
    sql: Any = importlib.import_module("sqlalchemy")
    model = importlib.import_module("yc_bench.db.models.task")
    assigned = model.TaskAssignment.__table__.c
    active = sql.select(model.Task.id).where(model.Task.status == model.TaskStatus.ACTIVE)

    def narrow(query: Any) -> None:
        condition = cast("Any", getattr(query.statement, "whereclause", None))
        if isinstance(condition, sql.BinaryExpression) and condition.left.compare(assigned.employee_id):
            query.statement = query.statement.where(assigned.task_id.in_(active))

    session = importlib.import_module("sqlalchemy.orm").Session
    importlib.import_module("sqlalchemy.event").listen(session, "do_orm_execute", narrow)


def create_world(settings: Settings, engine: Any) -> None:
    """Create the tables and the world.

    The simulator's `sim init` expects the tables, and draws prestige, rewards and requirements from the
    schema's defaults whatever the preset says; that world is made under `draws="sim_init"`.
    """
    config = importlib.import_module("yc_bench.config").load_config(settings.preset)
    database = importlib.import_module("yc_bench.db.session")
    seeding = importlib.import_module("yc_bench.services.seed_world")
    events = importlib.import_module("yc_bench.core.events")
    kinds = importlib.import_module("yc_bench.db.models.event").EventType
    sim_state = importlib.import_module("yc_bench.db.models.sim_state").SimState
    database.init_db(engine)
    day = datetime.fromisoformat(settings.start_date or config.sim.start_date)
    start = day.replace(hour=config.world.workday_start_hour, tzinfo=UTC)
    years = settings.horizon_years or config.sim.horizon_years
    horizon = start.replace(year=start.year + years)
    request = seeding.SeedWorldRequest(
        run_seed=settings.seed,
        company_name=settings.company,
        horizon_years=years,
        employee_count=config.world.num_employees,
        market_task_count=config.world.num_market_tasks,
        start_date=start,
        **({"cfg": config.world} if settings.draws == "preset" else {}),
    )
    with database.session_scope(database.build_session_factory(engine)) as db:
        company = seeding.seed_world_transactional(db, request).company_id
        events.insert_event(
            db=db,
            company_id=company,
            event_type=kinds.HORIZON_END,
            scheduled_at=horizon,
            payload={"reason": "horizon_end"},
            dedupe_key="horizon_end",
        )
        state = {"sim_time": start, "horizon_end": horizon, "run_seed": settings.seed, "replenish_counter": 0}
        db.add(sim_state(company_id=company, **state))


def world_hash(db: sqlite3.Connection) -> str:
    """Hash of what makes two worlds the same: titles, rewards, requirements, employees. Ids are random."""
    tasks = db.execute(
        "SELECT t.title, t.required_prestige, t.reward_funds_cents, t.reward_prestige_delta, t.skill_boost_pct,"
        " (SELECT group_concat(r.domain || ':' || r.required_qty, ',') FROM"
        "  (SELECT * FROM task_requirements WHERE task_id = t.id ORDER BY domain) r)"
        " FROM tasks t WHERE t.status = 'market'"
    ).fetchall()
    staff = db.execute(
        "SELECT e.salary_cents, (SELECT group_concat(s.domain || ':' || s.rate_domain_per_hour, ',') FROM"
        "  (SELECT * FROM employee_skill_rates WHERE employee_id = e.id ORDER BY domain) s) FROM employees e"
    ).fetchall()
    text = json.dumps([sorted(map(list, tasks), key=str), sorted(map(list, staff), key=str)])
    return hashlib.sha256(text.encode()).hexdigest()


def state(db: sqlite3.Connection) -> dict[str, Any]:
    """Where the simulation stands. Funds are US cents, times ISO without a zone."""
    ((funds,),) = db.execute("SELECT funds_cents FROM companies").fetchall()
    ((sim_time, horizon),) = db.execute("SELECT sim_time, horizon_end FROM sim_state").fetchall()
    ends = db.execute(
        "SELECT lower(event_type), scheduled_at, consumed FROM sim_events"
        " WHERE lower(event_type) IN ('bankruptcy', 'horizon_end') ORDER BY scheduled_at"
    ).fetchall()
    counts = "SELECT lower(status), count(*) FROM tasks WHERE company_id IS NOT NULL GROUP BY 1"
    return {
        "funds_cents": funds,
        "sim_time": sim_time,
        "horizon_end": horizon,
        "horizon_reached": any(kind == "horizon_end" and consumed for kind, _, consumed in ends),
        "bankrupt": funds < 0 or any(kind == "bankruptcy" for kind, _, _ in ends),
        "last_terminal_event": ends[-1][0] if ends else None,
        "tasks": dict(db.execute(counts).fetchall()),
    }


@functools.cache
def application() -> Any:
    """The simulator's own application. Typer would build it anew for every command, which is half a command's time."""
    return importlib.import_module("typer.main").get_command(importlib.import_module("yc_bench.cli").app)


def run_command(argv: list[str]) -> tuple[int, bytes, bytes]:
    """Run one command of the simulator's own application in this process; exit code, stdout, stderr."""
    if argv and argv[0] in FORBIDDEN:
        message = f"`yc-bench {argv[0]}` is not part of this benchmark: it {FORBIDDEN[argv[0]]}."
        return 1, json.dumps({"error": message}).encode() + b"\n", b""
    app = application()
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(argv, prog_name="yc-bench")
        except SystemExit as stop:
            code = stop.code
        except Exception as error:  # the plain command would end with a traceback and code 1
            print(f"{type(error).__name__}: {error}", file=err)
            code = 1
    if not isinstance(code, int):
        code = 0 if code is None else 1
    return code, out.buffer.getvalue(), err.buffer.getvalue()  # type: ignore[attr-defined]


class Game:
    """One run's simulation: a sequence of commands, and the journal of them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.commands = 0
        self.journal: list[str] = []

    def command(self, argv: list[str]) -> dict[str, Any]:
        """Run a command of the agent's."""
        started = time.monotonic()
        code, out, err = run_command(argv)
        seconds = time.monotonic() - started
        self.commands += 1
        noted = [part[:LONGEST_NOTE] for part in argv]
        self._note({"n": self.commands, "argv": noted, "code": code, "seconds": round(seconds, 4)})
        return {
            "code": code,
            "stdout": out.decode("utf-8", "surrogateescape"),
            "stderr": err.decode("utf-8", "surrogateescape"),
        }

    def _note(self, entry: dict[str, Any]) -> None:
        now = state(self.db)
        entry |= {"sim_time": now["sim_time"], "funds_cents": now["funds_cents"]}
        self.journal.append(json.dumps(entry))

    def answer(self, ask: str, start: int = 0) -> dict[str, Any]:
        """What the harness asks for: `state`, `finish` (play to the end without a decision), `journal` (from a line on)."""
        if ask == "journal":
            return {"lines": self._page(start)}
        before = state(self.db)
        if ask == "state":
            return before
        return {
            "idle_resumes": self._advance(),
            **state(self.db),
            "before": before,
            "commands": self.commands,
        }

    def _page(self, start: int) -> list[str]:
        size = 0
        for end, line in enumerate(self.journal[start:], start + 1):
            size += len(line)
            if size >= PAGE:
                return self.journal[start:end]
        return self.journal[start:]

    def _advance(self) -> int:
        """Let time pass up to the horizon or bankruptcy; how many steps that took."""
        for step in range(IDLE_LIMIT):
            now = state(self.db)
            if now["bankrupt"] or now["horizon_reached"]:
                return step
            code, out, err = run_command(["sim", "resume"])
            if code:
                raise RuntimeError(f"sim resume failed: {(out + err).decode()[-500:]}")
            self._note({"n": None, "argv": ["sim", "resume"], "idle": True, "code": code, "seconds": 0.0})
        raise RuntimeError(f"the simulation did not end after {IDLE_LIMIT} events")


def play_idle(settings: Settings) -> dict[str, Any]:
    """How this world ends, as `finish` says it, where nobody decides anything: the baselines `never` and `idle`."""
    db, engine = open_database()
    create_world(settings, engine)
    with contextlib.closing(db):
        return Game(db).answer("finish")


class Channel:
    """Messages as lines that nobody without the secret can write. The harness uses this class too."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def _sign(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), "sha256").hexdigest()

    def pack(self, message: dict[str, Any]) -> bytes:
        """A message and its signature as one line."""
        text = json.dumps(message)
        return json.dumps({"message": text, "mac": self._sign(text)}).encode() + b"\n"

    def unpack(self, line: bytes) -> dict[str, Any] | None:
        """The message in a line; None where it is something else or somebody else's."""
        try:
            parts = json.loads(line)
            if hmac.compare_digest(self._sign(parts["message"]), parts["mac"]):
                return cast("dict[str, Any]", json.loads(parts["message"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        return None


def receive(connection: socket.socket) -> list[str]:
    """The arguments of a command: JSON up to the end of the stream."""
    data = bytearray()
    while chunk := connection.recv(1 << 16):
        data += chunk
        if len(data) > LONGEST_REQUEST:
            raise ValueError("a command line is too long")
    argv = json.loads(data)["argv"]
    return [str(part) for part in argv]


def serve_agent(connection: socket.socket, game: Game) -> None:
    """Answer one command. A client that hangs up or talks nonsense is no reason to stop."""
    connection.settimeout(60)
    try:
        argv = receive(connection)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return
    answer = json.dumps(game.command(argv)).encode()
    with contextlib.suppress(OSError):
        connection.sendall(answer)


def serve(folder: str) -> None:
    """Make the world in `folder`, say so, and serve the agent and the harness until the latter is gone."""
    requests = io.FileIO(sys.stdin.fileno(), closefd=False)
    settings = Settings(**json.loads(read_line(requests)))
    os.chdir(folder)
    os.environ["YC_BENCH_EXPERIMENT"] = settings.preset
    read_presets_once()
    pass_over_ended_tasks()
    simulator = identify(settings.preset)
    idle = play_idle(settings)
    db, engine = open_database()
    create_world(settings, engine)
    game, channel = Game(db), Channel(settings.secret)
    public = {key: value for key, value in asdict(settings).items() if key != "secret"}
    # The socket's path is relative: a Unix socket's address holds 108 bytes at most.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(SOCKET)
        listener.listen(64)
        ready = {"simulator": simulator, "world_hash": world_hash(db), "settings": public, "idle": idle}
        run_command(
            ["--help"]
        )  # loads what draws help and errors, so that no command of the agent waits for it
        code, status, _ = run_command(["company", "status"])
        say(channel.pack({**ready, "company": json.loads(status) if code == 0 else None}))
        while True:
            readable, _, _ = select.select([requests, listener], [], [])
            if requests in readable:
                if not (line := read_line(requests)):
                    return
                if request := channel.unpack(line):
                    say(channel.pack({"nonce": request.pop("nonce"), **game.answer(**request)}))
            else:
                connection, _ = listener.accept()
                with connection:
                    serve_agent(connection, game)


def say(line: bytes) -> None:
    """Print a line of bytes."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def read_line(stream: io.FileIO) -> bytes:
    """A line from an unbuffered stream, so that nothing waits in a buffer where `select` does not see it."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := stream.read(1)):
        line += byte
    return bytes(line)


def main(verb: str, *arguments: str) -> None:
    """Run the program."""
    try:
        if verb == "identify":
            print(json.dumps(identify(*arguments)))
        else:
            serve(*arguments)
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:3]))
        print(
            f"{sys.executable} (Python {version}) cannot run the simulator: {error}. It needs Python 3.12 or newer and "
            f"`uv pip install --python {sys.executable} yc-bench==0.1.0`.",
            file=sys.stderr,
        )
        sys.exit(REFUSED)
    except UnsupportedSimulator as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main(*sys.argv[1:])
