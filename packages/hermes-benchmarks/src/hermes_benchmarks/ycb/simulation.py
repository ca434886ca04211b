"""One run's simulator inside its sandbox: started before the agent, finished and read after it."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from hermes_envs import InfraFailed, PolicyFailed, Reward

from hermes_benchmarks.errors import BenchmarkError, UsageError
from hermes_benchmarks.ycb import prompt
from hermes_benchmarks.ycb.score import score
from hermes_benchmarks.ycb.simulator import REFUSED, Channel

if TYPE_CHECKING:
    from hermes_envs import AgentResult, RolloutSession, ToolContext
    from hermes_sandbox import Process, Sandbox

START_TIMEOUT = 120.0
FINISH_TIMEOUT = 300.0
FOLDER = ".yc-bench"
COMMAND = "/usr/local/bin/yc-bench"
"""Where the agent finds the command in a sandbox with a root of its own; a local one has the package's `bin` on its PATH."""


class SimulatorError(BenchmarkError):
    """The simulator could not be started or does not answer."""


class SimulatorEnded(BenchmarkError):
    """The simulator is not running any more."""


@dataclass(frozen=True, slots=True)
class World:
    """What makes one run's world.

    Attributes:
        preset: The simulator's preset, or the path of a TOML file.
        seed: Of all its draws.
        draws: "preset" for the preset's own world; "sim_init" for the one that the simulator's `sim init` makes, with the
            preset's sizes but the schema's default prestige, rewards and requirements.
        company: The company's name.
        start_date: ISO date; None takes the preset's.
        horizon_years: None takes the preset's.
    """

    preset: str
    seed: int
    draws: str = "preset"
    company: str = "BenchCo"
    start_date: str | None = None
    horizon_years: int | None = None

    @property
    def name(self) -> str:
        """The task's name, such as `fast_test-1`."""
        return f"{self.label}-{self.seed}"

    @property
    def label(self) -> str:
        """The preset's name."""
        return PurePath(self.preset).stem if self.preset.endswith(".toml") else self.preset


class Simulation:
    """The simulator of one rollout. Its three bound methods are the rollout's `prepare`, `messages` and `reward`."""

    def __init__(
        self, world: World, *, python: str, max_turns: int, system_prompt: str | None = None
    ) -> None:
        self.world = world
        self.python = python
        self.max_turns = max_turns
        self.system_prompt = system_prompt
        self.ready: Mapping[str, Any] = {}
        self._secret = secrets.token_hex(16)
        self._channel = Channel(self._secret)
        self._sandbox: Sandbox | None = None
        self._process: Process | None = None
        self._heard = 0
        self._folder = ""

    async def prepare(self, session: RolloutSession) -> None:
        """Put the simulator's server and its command into the sandbox and wait until the world is made."""
        sandbox = self._sandbox = session.sandbox
        home = (await sandbox.exec('printf %s "$HOME"', timeout=30, check=True)).stdout.decode()
        self._folder = f"{home.rstrip('/')}/{FOLDER}"
        for name in ("simulator.py", "shim.py"):
            await sandbox.write_bytes(
                f"{self._folder}/{name}", files("hermes_benchmarks.ycb").joinpath(name).read_bytes()
            )
        if sandbox.backend != "local":
            await sandbox.write_bytes(
                COMMAND, files("hermes_benchmarks.ycb").joinpath("bin/yc-bench").read_bytes(), mode=0o755
            )
        program = f"{self._folder}/simulator.py"
        self._process = await sandbox.spawn([self.python, program, "serve", self._folder])
        world = self.world
        settings = {
            "preset": world.preset,
            "seed": world.seed,
            "draws": world.draws,
            "company": world.company,
        }
        settings |= {
            "start_date": world.start_date,
            "horizon_years": world.horizon_years,
            "secret": self._secret,
        }
        await self._process.write(json.dumps(settings).encode() + b"\n")
        try:
            async with asyncio.timeout(START_TIMEOUT):
                self.ready = await self._hear(self._process)
        except TimeoutError:
            raise SimulatorError(f"the simulator made no world within {START_TIMEOUT:.0f} s") from None
        except SimulatorEnded as error:
            refused = await self._process.poll() in (REFUSED, 126, 127)
            raise (UsageError if refused else SimulatorError)(str(error)) from None

    async def _hear(self, process: Process, nonce: str | None = None) -> Mapping[str, Any]:
        """The simulator's next message, or its answer to the request with this nonce. Other lines are not its own."""
        rest = b""
        while True:
            ended = process.ended and await process.wait() is not None
            output = await process.read(self._heard)
            self._heard = output.next_offset
            *lines, rest = (rest + output.data).split(b"\n")
            for line in lines:
                message = self._channel.unpack(line)
                if message is not None and message.get("nonce") == nonce:
                    return message
            if ended and not output.data:
                said = (await process.read()).data.decode(errors="replace").strip()
                raise SimulatorEnded(f"the simulator ended: {said[-1000:]}")
            if not output.data:
                await asyncio.sleep(0.02)

    async def messages(self, session: RolloutSession) -> Sequence[dict[str, Any]]:
        """The conversation to start from, about the company that was made."""
        return prompt.messages(
            self.ready["company"], max_turns=self.max_turns, system_prompt=self.system_prompt
        )

    async def reward(self, result: AgentResult, ctx: ToolContext) -> Reward:
        """Let the simulation come to its end and score it."""
        try:
            async with asyncio.timeout(FINISH_TIMEOUT):
                final, journal = await self._finish()
        except TimeoutError:
            raise InfraFailed(f"the simulator did not finish within {FINISH_TIMEOUT:.0f} s") from None
        found = score(final)
        info = {
            **found.to_dict(),
            "world_hash": self.ready["world_hash"],
            "simulator": self.ready["simulator"],
            "idle_composite": score(self.ready["idle"]).composite,
        }
        info |= {"preset": self.world.preset, "seed": self.world.seed, "draws": self.world.draws}
        info["series"] = {"Funds in US dollars over simulated days": funds_over_time(journal)}
        return Reward(found.composite, {"cause": "score", "info": info, "files": {"journal.jsonl": journal}})

    async def _finish(self) -> tuple[Mapping[str, Any], bytes]:
        """The end of the simulation, and its journal."""
        process = self._process
        assert process is not None
        journal: list[str] = []
        try:
            if not process.ended:
                await process.signal("CONT")  # an agent may have stopped it
            final = await self._ask(process, ask="finish")
            while lines := (await self._ask(process, ask="journal", start=len(journal)))["lines"]:
                journal += lines
        except (OSError, SimulatorEnded) as error:
            ended = await process.wait(timeout=10)
            # A signal is somebody's doing, and nobody but the agent is in there; anything else is the simulator's fault.
            if ended is not None and ended > 128:
                raise PolicyFailed(f"the simulator was killed (exit code {ended})") from None
            raise InfraFailed(f"the simulator ended by itself with exit code {ended}: {error}") from None
        return final, "".join(f"{line}\n" for line in journal).encode()

    async def _ask(self, process: Process, **request: Any) -> Mapping[str, Any]:
        nonce = secrets.token_hex(8)
        # A line of its own, whatever was written to the simulator's input before.
        await process.write(b"\n" + self._channel.pack({**request, "nonce": nonce}))
        return await self._hear(process, nonce)


def funds_over_time(journal: bytes) -> list[tuple[float, float]]:
    """Days since the start and funds in US dollars, at each point where one of them changed."""
    points: list[tuple[float, float]] = []
    start: datetime | None = None
    for line in journal.splitlines():
        entry = json.loads(line)
        now = datetime.fromisoformat(entry["sim_time"])
        start = start or now
        point = (round((now - start).total_seconds() / 86400, 3), entry["funds_cents"] / 100)
        if not points or points[-1] != point:
            points.append(point)
    return points
