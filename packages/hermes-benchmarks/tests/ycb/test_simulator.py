"""The warm simulator against the plain command, on the real yc-bench."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hermes_benchmarks.ycb.simulator import REFUSED, Channel

PYTHON = os.environ.get("HERMES_YCB_PYTHON", sys.executable)
PROGRAMS = str(files("hermes_benchmarks.ycb"))
SIMULATOR = f"{PROGRAMS}/simulator.py"
SETTINGS = {"preset": "fast_test", "seed": 1, "company": "BenchCo", "secret": "only the harness knows"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Warm:
    """A warm simulator in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / ".yc-bench"
        self.folder.mkdir()
        self.place = os.open(self.folder, os.O_PATH)  # its path may be too long for the address of a socket
        for name in ("simulator.py", "shim.py"):
            shutil.copy(f"{PROGRAMS}/{name}", self.folder / name)
        argv = [PYTHON, SIMULATOR, "serve", self.folder]
        self.server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.channel = Channel(str(SETTINGS["secret"]))
        self.write(json.dumps(SETTINGS).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.server.stdin
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def hear(self) -> Any:
        assert self.server.stdout
        return self.channel.unpack(self.server.stdout.readline())

    def ask(self, **request: Any) -> Any:
        self.write(self.channel.pack({**request, "nonce": "1"}))
        return self.hear()

    def raw(self, data: bytes) -> bytes:
        """What the socket answers."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(f"/proc/self/fd/{self.place}/socket")
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))

    def command(self, argv: list[str]) -> dict[str, Any]:
        return json.loads(self.raw(json.dumps({"argv": argv}).encode()))

    def close(self) -> None:
        self.server.kill()
        self.server.wait()
        os.close(self.place)
        for stream in (self.server.stdin, self.server.stdout):
            assert stream
            stream.close()


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    started = Warm(tmp_path)
    yield started
    started.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """A simulator for tests that leave the company as it is."""
    started = Warm(tmp_path_factory.mktemp("shared"))
    assert started.hear()["company"]["funds_cents"] == 25_000_000
    yield started
    started.close()


@pytest.mark.parametrize("argv", ["--help", "task accept --help", "nonsense", "market browse", "sim resume"])
def test_the_first_command_of_an_agent_waits_for_no_import(
    tmp_path: Path, argv: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with closing(Warm(tmp_path)) as warm:
        assert warm.hear()
        assert "import time:" in capfd.readouterr().err
        assert warm.command(argv.split())["code"] in (0, 2)
        assert "import time:" not in capfd.readouterr().err


# The plain command, in a fork for each call: everything but the imports happens anew.
PLAIN = f"""
import json, os, sys
sys.path.insert(0, {PROGRAMS!r})
import simulator
from yc_bench.cli import app_main
from yc_bench.db.session import build_engine
simulator.create_world(simulator.Settings(**json.loads(sys.stdin.readline())), build_engine())
for line in sys.stdin:
    readers = [os.pipe(), os.pipe()]
    if not (child := os.fork()):
        for number, (_, writer) in enumerate(readers, 1):
            os.dup2(writer, number)
        sys.argv = ["yc-bench", *json.loads(line)]
        try:
            app_main()
        except SystemExit as stop:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(stop.code or 0)
        os._exit(0)
    for _, writer in readers:
        os.close(writer)
    out, err = (open(reader, "rb").read().decode() for reader, _ in readers)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps({{"code": code, "stdout": out, "stderr": err}}), flush=True)
"""

# A word in capitals is an id that the same side has listed before.
PLAY = """
company status
employee list
market browse --limit 3
market browse --required-prestige-lte 1
task accept --task-id TASK
task assign --task-id TASK --employee-id EMPLOYEE
task assign --task-id TASK --employee-id EMPLOYEE
task dispatch --task-id TASK
task list --status active
task inspect --task-id TASK
sim resume
sim resume
market browse --required-prestige-lte 1
task accept --task-id TASK
task dispatch --task-id TASK
task assign --task-id TASK --employee-id EMPLOYEE
task dispatch --task-id TASK
market browse --required-prestige-lte 1
task accept --task-id TASK
task assign --task-id TASK --employee-id EMPLOYEE
task dispatch --task-id TASK
employee list
task assign --task-id TASK --employee-id EMPLOYEE
task inspect --task-id TASK
sim resume
sim resume
task list
finance ledger
report monthly
task accept --task-id TASK
scratchpad write --content grüß
scratchpad append --content plan
scratchpad read
task accept --task-id not-an-id
market browse --domain nonsense
nonsense
task --help
--help
"""


def listed(answer: dict[str, Any], known: dict[str, str]) -> None:
    """Keep the first ids of a listing."""
    if answer["code"] == 0 and answer["stdout"].startswith("{"):
        for key, word in (("tasks", "TASK"), ("employees", "EMPLOYEE")):
            items = json.loads(answer["stdout"]).get(key)
            if isinstance(items, list) and items:
                known[word] = items[0][word.lower() + "_id"]


@pytest.mark.ycb
def test_a_play_is_answered_with_the_plain_commands_bytes(warm: Warm, tmp_path: Path) -> None:
    env = {"DATABASE_URL": f"sqlite:///{tmp_path}/plain.db", "YC_BENCH_EXPERIMENT": "fast_test"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([PYTHON, "-c", PLAIN], env=env, text=True, **pipes) as plain:
        assert plain.stdin
        assert plain.stdout
        print(json.dumps(SETTINGS), file=plain.stdin, flush=True)
        assert warm.hear()
        ids: tuple[dict[str, str], dict[str, str]] = ({}, {})
        for line in PLAY.strip().splitlines():
            print(json.dumps([ids[0].get(w, w) for w in line.split()]), file=plain.stdin, flush=True)
            theirs = json.loads(plain.stdout.readline())
            ours = warm.command([ids[1].get(word, word) for word in line.split()])
            for side, answer in zip(ids, (theirs, ours), strict=True):
                listed(answer, side)
            assert UUID.sub("ID", json.dumps(ours)) == UUID.sub("ID", json.dumps(theirs)), line
        plain.stdin.close()


@pytest.mark.ycb
def test_the_command_prints_what_the_simulator_answers(shared: Warm) -> None:
    env = {"HOME": str(shared.home), "PATH": os.defpath, "YCB_PYTHON": PYTHON}
    command = f"{PROGRAMS}/bin/yc-bench"
    told = subprocess.run([command, "task", "list"], capture_output=True, env=env, timeout=60, check=False)
    answer = shared.command(["task", "list"])
    assert (told.returncode, told.stdout.decode()) == (0, answer["stdout"])
    wrong = subprocess.run([command, "nonsense"], capture_output=True, env=env, timeout=60, check=False)
    assert (wrong.returncode, wrong.stderr.decode()) == (2, shared.command(["nonsense"])["stderr"])


def test_the_command_of_a_dead_simulator_says_so(tmp_path: Path) -> None:
    shim = shutil.copy(f"{PROGRAMS}/shim.py", tmp_path)
    told = subprocess.run([sys.executable, "-S", shim, "company", "status"], capture_output=True, check=False)
    assert told.returncode == 1
    assert "gave no answer" in json.loads(told.stdout)["error"]


@pytest.mark.ycb
def test_never_resuming_ends_in_bankruptcy_as_the_journal_tells_and_the_simulator_ends_with_the_harness(
    warm: Warm,
) -> None:
    assert warm.hear()
    assert warm.command(["company", "status"])["code"] == 0
    assert warm.command(["scratchpad", "write", "--content", "x" * 5000])["code"] == 0
    final = warm.ask(ask="finish")
    assert final["funds_cents"] == -491_336
    assert final["bankrupt"] is True
    assert final["before"]["funds_cents"] == 25_000_000
    first, second, *idle = (json.loads(line) for line in warm.ask(ask="journal", start=0)["lines"])
    assert (first["n"], first["argv"], first["funds_cents"]) == (1, ["company", "status"], 25_000_000)
    assert len(second["argv"][-1]) == 2000
    assert idle[-1]["idle"] is True
    assert idle[-1]["funds_cents"] == -491_336
    assert idle[-1]["sim_time"] > first["sim_time"]
    assert warm.ask(ask="journal", start=2 + len(idle))["lines"] == []
    assert warm.server.stdin
    warm.server.stdin.close()  # the harness has gone
    assert warm.server.wait(60) == 0


@pytest.mark.ycb
def test_only_the_harness_is_told_and_obeyed(shared: Warm) -> None:
    forged = Channel("a guess").pack({"ask": "finish", "nonce": "forged"})
    shared.write(b"half a line" + b"\n" + forged)
    told = shared.ask(ask="state")
    assert (told["nonce"], told["horizon_reached"], told["bankrupt"]) == ("1", False, False)


@pytest.mark.ycb
def test_a_client_that_talks_nonsense_stops_nothing(shared: Warm) -> None:
    for nonsense in (b"", b"{", b"[]", b'{"argv": 5}', b'{"ask": "finish"}', b"[" * 100_000):
        assert shared.raw(nonsense) == b""
    assert shared.command(["company", "status"])["code"] == 0


@pytest.mark.ycb
def test_the_simulators_own_model_loop_is_refused(shared: Warm) -> None:
    answer = shared.command(["run", "--model", "x", "--seed", "1"])
    assert answer["code"] == 1
    assert "not part of this benchmark" in answer["stdout"]


@pytest.mark.ycb
def test_worlds_are_a_function_of_preset_seed_and_draws() -> None:
    program = """
import json, sys
sys.path.insert(0, sys.argv[1])
import simulator
for change in ({}, {}, {"seed": 2}, {"draws": "sim_init"}, {"preset": "medium"}):
    settings = simulator.Settings(**{**json.loads(sys.argv[2]), **change})
    db, engine = simulator.open_database()
    simulator.create_world(settings, engine)
    print(simulator.world_hash(db))
"""
    argv = [PYTHON, "-c", program, PROGRAMS, json.dumps(SETTINGS)]
    told = subprocess.run(argv, capture_output=True, text=True, check=True)
    first, again, *others = told.stdout.split()
    assert first == again
    assert len({first, *others}) == 4


@pytest.mark.ycb
def test_a_dispatch_costs_no_more_after_many_tasks() -> None:
    program = """
import json, sys
from collections import Counter
sys.path.insert(0, sys.argv[1])
import simulator
from sqlalchemy import event
db, engine = simulator.open_database()
simulator.pass_over_ended_tasks()
simulator.create_world(simulator.Settings(**json.loads(sys.argv[2])), engine)
asked = Counter()
event.listen(engine, "before_cursor_execute", lambda *_: asked.update(["all"]))
def run(line):
    code, out, _ = simulator.run_command(line.split())
    assert code == 0, out
    return json.loads(out)
employee = run("employee list")["employees"][0]["employee_id"]
for offer in run("market browse --required-prestige-lte 1 --limit 5")["tasks"]:
    task = "--task-id " + offer["task_id"]
    run("task accept " + task)
    run(f"task assign {task} --employee-id {employee}")
    asked.clear()
    run("task dispatch " + task)
    print(asked["all"])
    db.execute("UPDATE tasks SET status = 'completed_success' WHERE company_id IS NOT NULL")
"""
    argv = [PYTHON, "-c", program, PROGRAMS, json.dumps(SETTINGS)]
    told = subprocess.run(argv, capture_output=True, text=True, check=True)
    first, *later = map(int, told.stdout.split())
    assert len(later) == 4
    assert set(later) == {first}


def test_a_python_without_the_simulator_is_told_what_to_install() -> None:
    argv = [sys.executable, "-I", "-S", SIMULATOR, "identify"]
    told = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert told.returncode == REFUSED
    assert f"uv pip install --python {sys.executable} yc-bench==0.1.0" in told.stderr


@pytest.mark.parametrize(
    ("field", "module", "reason"),
    [("other", "other", "cannot seed a preset's own world"), ("cfg", "client_commands", "clients and trust")],
)
def test_an_unsupported_version_is_refused_by_name(
    tmp_path: Path, field: str, module: str, reason: str
) -> None:
    package = tmp_path / "yc_bench"
    for name in ("__init__", "services/__init__", "cli/__init__", f"cli/{module}"):
        (package / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (package / f"{name}.py").touch()
    (package / "services" / "seed_world.py").write_text(
        f"import dataclasses\n@dataclasses.dataclass\nclass SeedWorldRequest:\n    {field}: int\n"
    )
    noted = tmp_path / "yc_bench-0.2.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: yc-bench\nVersion: 0.2.0\n")
    env = {"PYTHONPATH": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-S", SIMULATOR, "identify", "medium"],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert told.returncode == REFUSED
    assert "yc-bench 0.2.0" in told.stderr
    assert reason in told.stderr
