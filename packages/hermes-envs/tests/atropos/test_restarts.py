"""Real programs, killed at any moment: run-api, two environments of different speed, and a trainer."""

import asyncio
import contextlib
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from atropos_world import TOKENIZER, RunApi, check_group
from policy_server import PolicyServer
from say_env import say_policy

pytestmark = [pytest.mark.atropos, pytest.mark.slow]

SUPPORT = Path(__file__).parents[1] / "support"
GROUP, BATCH, AHEAD = 2, 8, 2
PATIENCE = 120.0


class Program:
    """A process that is killed with SIGKILL and started again."""

    def __init__(self, log: Path, *command: str) -> None:
        self._log = log
        self._command = command
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, *more: str) -> None:
        with self._log.open("a") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, *self._command, *more, stdout=log, stderr=log
            )

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def resident_mb(self) -> float:
        """Memory that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Environment(Program):
    """A serving environment; each of its lives says in its system prompt which it is."""

    def __init__(self, name: str, folder: Path, api: RunApi, policy: str) -> None:
        settings = {
            "rollout_server_url": api.url,
            "wandb_name": name,
            "group_size": str(GROUP),
            "total_steps": "1000000",
            "max_batches_offpolicy": str(AHEAD),
            "ensure_scores_are_not_same": "false",
        }
        flags = [part for key, value in settings.items() for part in (f"--env.{key}", value)]
        servers = ["--openai.base_url", policy, "--openai.server_type", "vllm"]
        super().__init__(folder / f"{name}.log", str(SUPPORT / "say_env.py"), "serve", *flags, *servers)
        self.name = name
        self.lives = 0

    async def start(self) -> None:
        self.lives += 1
        await super().start("--env.system_prompt", self.life)

    @property
    def life(self) -> str:
        return f"{self.name} life {self.lives}"


class Received:
    """What the trainer wrote, read as it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.batches: list[list[dict]] = []

    def update(self) -> "Received":
        """Read the lines that are new; a killed trainer may have left a torn one."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                for line in iter(file.readline, b""):
                    if not line.endswith(b"\n"):
                        break
                    self._read += len(line)
                    with contextlib.suppress(ValueError):
                        self.batches.append(json.loads(line))
        return self

    @property
    def groups(self) -> list[dict]:
        return [group for batch in self.batches for group in batch]

    def by_life(self) -> Counter:
        return Counter(life_of(group) for group in self.groups)


def life_of(group: dict) -> str:
    return group["messages"][0][0]["content"]


class World:
    """Everything that serves and trains."""

    def __init__(self, folder: Path, api: RunApi, quick: str, patient: str) -> None:
        self.api = api
        self.quick = Environment("quick", folder, api, quick)
        self.patient = Environment("patient", folder, api, patient)
        self.batches = folder / "batches.jsonl"
        trainer = (str(SUPPORT / "pulling_trainer.py"), api.url, str(self.batches), str(BATCH))
        self.trainer = Program(folder / "trainer.log", *trainer)
        self.received = Received(self.batches)

    @property
    def environments(self) -> list[Environment]:
        return [self.quick, self.patient]

    async def progress(self, groups: int = 2) -> None:
        """Until the trainer has got further groups from what lives now."""
        before = self.received.update().by_life()
        wanted = {env.life: before[env.life] + groups for env in self.environments}
        async with asyncio.timeout(PATIENCE):
            while True:
                found = self.received.update().by_life()
                if all(found[life] >= count for life, count in wanted.items()):
                    return
                for program in (self.trainer, *self.environments):
                    assert program.process.returncode is None, program.said[-2000:]
                await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def world(folder: Path):
    say = say_policy()

    async def slow(prompt: str) -> str:
        await asyncio.sleep(1.0)
        return say(prompt)

    async with (
        PolicyServer(TOKENIZER, say_policy()) as quick,
        PolicyServer(TOKENIZER, slow) as patient,
        RunApi() as api,
    ):
        made = World(folder, api, quick.url, patient.url)
        programs = [made.trainer, *made.environments]
        try:
            for program in programs:
                await program.start()
            yield made
        finally:
            for program in programs:
                await program.kill()


@pytest.mark.timeout(900)
async def test_any_of_them_killed_at_any_moment_loses_at_most_what_is_in_flight(tmp_path):
    chance = random.Random(int(os.environ.get("HERMES_TEST_SEED", "8")))
    async with world(tmp_path) as made:
        await made.progress()
        victims = {
            "api": made.api,
            "trainer": made.trainer,
            "quick": made.quick,
            "patient": made.patient,
        }
        order = list(victims) + chance.choices(list(victims), k=6)
        killed: Counter = Counter()
        for number, name in enumerate(order):
            chosen = {name} | ({chance.choice(list(victims))} if number % 3 == 2 else set())
            await asyncio.sleep(chance.uniform(0, 1.5))
            for victim in chosen:
                await victims[victim].kill()
                killed[victim] += 1
            await asyncio.sleep(chance.uniform(0, 2))
            for victim in chosen:
                await victims[victim].start()
            await made.progress()
        quick_said = made.quick.said
    received = made.received.update()
    assert killed.keys() == victims.keys()

    seen: Counter = Counter()
    for batch in received.batches:
        assert sum(len(group["tokens"]) for group in batch) == BATCH
        for group in batch:
            check_group(group, GROUP, distinct=False)
            (item,) = {messages[1]["content"] for messages in group["messages"]}
            seen[life_of(group), int(item.removeprefix("Say ").rstrip("."))] += 1
    assert max(seen.values()) == 1, "a group came twice"

    # Lost at most: what waited in a killed API, and what a killed trainer held.
    waiting = AHEAD * BATCH // GROUP + BATCH // GROUP
    bound = killed["api"] * waiting + killed["trainer"] * BATCH // GROUP
    for env in made.environments:
        lost: list[tuple[int, int]] = []
        for life in range(1, env.lives + 1):
            numbers = {number for (name, number) in seen if name == f"{env.name} life {life}"}
            # The last few were in flight, or in the queue, when this life or the test ended.
            settled = max(numbers) - 2 * waiting
            lost += [(life, number) for number in range(1, settled) if number not in numbers]
        assert len(lost) <= bound, (env.name, lost, killed)
    assert "is run-api running?" in quick_said and "no longer waiting" in quick_said
    assert "no trainer has registered" in quick_said or "does not answer" in quick_said


@pytest.mark.timeout(600)
async def test_process_killed_again_and_again_writes_every_group_once(tmp_path):
    groups, output = 60, tmp_path / "out.jsonl"
    say = say_policy()

    async def slow(prompt: str) -> str:
        await asyncio.sleep(0.3)
        return say(prompt)

    def lines() -> list[bytes]:
        return output.read_bytes().splitlines(keepends=True) if output.exists() else []

    async with PolicyServer(TOKENIZER, slow) as policy:
        settings = {"total_steps": groups, "group_size": GROUP, "max_num_workers": 3}
        flags = [part for key, value in settings.items() for part in (f"--env.{key}", str(value))]
        command = ("process", "--output", str(output), "--openai.base_url", policy.url, *flags)
        script = str(SUPPORT / "say_env.py")
        program = Program(tmp_path / "process.log", script, *command, "--openai.server_type", "vllm")
        for wanted in (4, 40, 80):
            await program.start()
            async with asyncio.timeout(PATIENCE):
                while len(lines()) < wanted:
                    assert program.process.returncode is None, program.said[-2000:]
                    await asyncio.sleep(0.01)
            await program.kill()
        await program.start()
        async with asyncio.timeout(PATIENCE):
            assert await program.process.wait() == 0, program.said[-2000:]
    written = [json.loads(line)["metadata"] for line in lines()]
    found = Counter((line["group"], line["member"]) for line in written)
    assert found == {(group, member): 1 for group in range(groups) for member in range(GROUP)}
    assert f"{groups}/{groups} groups" in program.said and "going on from there" in program.said
    assert len(policy.requests) < groups * GROUP + 3 * 3 * GROUP + 1, "what was written is not run again"


SERVING = float(os.environ.get("HERMES_TEST_SERVING_SECONDS", "330"))


@pytest.mark.timeout(SERVING + 570)
async def test_serving_for_long_holds_its_pace_and_its_memory(tmp_path):
    seconds, settle = SERVING, 60.0
    async with world(tmp_path) as made:
        await made.progress()
        began = time.monotonic()
        paces: list[int] = []
        memory: dict[str, list[float]] = {env.name: [] for env in made.environments}
        while time.monotonic() - began < seconds:
            before = len(made.received.update().groups)
            await asyncio.sleep(15)
            paces.append(len(made.received.update().groups) - before)
            for env in made.environments:
                assert env.process.returncode is None, env.said[-2000:]
                if time.monotonic() - began > settle:
                    memory[env.name].append(env.resident_mb)
        counts = made.received.by_life()
        assert "Traceback" not in made.quick.said + made.patient.said
    assert all(pace > 0 for pace in paces), paces
    assert counts[made.quick.life] > 100 and counts[made.patient.life] > 20, counts
    for name, sizes in memory.items():
        assert sizes[-1] - sizes[0] < 30, (name, sizes)
    for group in made.received.groups[:: max(1, len(made.received.groups) // 200)]:
        check_group(group, GROUP, distinct=False)
