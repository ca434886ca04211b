"""Programming tasks: write a function, judged by tests that the agent never sees."""

import random
import secrets
from dataclasses import replace
from typing import Any, Literal, NoReturn

from hermes_tools import ToolsetUnavailableError, resolve_toolsets
from pydantic import Field

from hermes_envs.atropos.base_env import HermesAgentBaseEnv
from hermes_envs.atropos.cli import default_server
from hermes_envs.atropos.config import HermesAgentEnvConfig
from hermes_envs.atropos.datasets import load_rows
from hermes_envs.atropos.library import APIServerConfig
from hermes_envs.config import ConfigError
from hermes_envs.context import ToolContext
from hermes_envs.outcome import InfraFailed
from hermes_envs.result import AgentResult
from hermes_envs.spec import Reward

from .human_eval import CodingTask, coding_task, installed_rows
from .languages import Language

_PROMPT = """\
Write this {title} function and save it, complete with everything it needs, as the file {file} in the current \
directory. Run it to convince yourself that it is right; it will be tested.

```{language}
{stub}
```"""
_UNTESTED = 125
_UNBUILT = 126
# The tests run in a folder of their own, with limits, and read nothing from where the agent worked.
_PROBE = """\
command -v {needs} >/dev/null || {{ echo {needs}; exit {untested}; }}
cd {folder} && ({probe}) 2>&1 || exit {untested}
({build}) 2>&1 || exit {unbuilt}"""
_RUN = """\
cd {folder} || exit {untested}
ulimit -t {seconds} -f 1048576 2>/dev/null
{limit_memory}
({run}) </dev/null 2>&1"""


class HermesSweEnvConfig(HermesAgentEnvConfig):
    """What programming tasks need besides."""

    language: Literal["python", "js", "java", "go", "cpp", "rust"] = Field(
        default="python", description="HumanEvalPack's configuration"
    )
    test_timeout: float = Field(default=30, gt=0, description="Seconds for the tests of one solution")
    build_timeout: float = Field(default=300, gt=0, description="Seconds to compile one solution")
    test_memory_mb: int = Field(
        default=4096, gt=0, description="Memory for the tests of a Python or C++ solution"
    )
    eval_size: int = Field(default=24, ge=0, description="Rows kept for evaluation, never trained on")


class HermesSweEnv(HermesAgentBaseEnv[HermesSweEnvConfig]):
    """Functions of HumanEval and HumanEvalPack to be written with terminal, file and web tools."""

    name = "swe-env"
    env_config_cls = HermesSweEnvConfig

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
        """Terminal and file tools, and the web where a search backend is configured."""
        config = HermesSweEnvConfig(
            enabled_toolsets=["terminal", "file", *_web()],
            dataset_split="test",
            max_agent_turns=20,
            max_token_length=4096,
        )
        return config, [default_server()]

    async def setup(self) -> None:
        """Load the tasks."""
        config = self.config
        if config.dataset_name is None:
            if config.language != "python":
                raise ConfigError(f"{config.language} needs --env.dataset_name bigcode/humanevalpack")
            rows = installed_rows()
        else:
            rows = load_rows(config.dataset_name, config.dataset_split, subset=config.language)
        tasks = [coding_task(row, config.language) for row in rows]
        random.Random(config.seed or 0).shuffle(tasks)
        kept = min(config.eval_size, len(tasks) // 2)
        self.held_out, self.train = tasks[:kept], tasks[kept:]
        self.iter = 0

    async def get_next_item(self) -> CodingTask:
        """The tasks in turn, without end."""
        task = self.train[self.iter % len(self.train)]
        self.iter += 1
        return task

    def format_prompt(self, item: CodingTask) -> str:
        """The signature and docstring; the tests are never shown."""
        language = item.language
        return _PROMPT.format(
            title=language.title,
            language=language.name,
            file=f"solution.{language.suffix}",
            stub=item.stub.strip(),
        )

    async def compute_reward(self, item: CodingTask, result: AgentResult, ctx: ToolContext) -> Reward:
        """1 where every test passes, else 0."""
        solution = ctx.read_file(f"solution.{item.language.suffix}").get("content")
        if not solution:
            return Reward(0.0, {"tests": "no solution"})
        return self._tested(item, solution, ctx)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """The tasks kept for evaluation."""
        await self.evaluate_items(self.held_out)

    def _tested(self, item: CodingTask, solution: str, ctx: ToolContext) -> Reward:
        folder = str(ctx.terminal("mktemp -d")["output"]).strip()
        if not folder.startswith("/"):
            raise InfraFailed(f"the sandbox gave no folder for the tests: {folder[:200]!r}")
        seal = secrets.token_hex(16)
        for name, text in item.language.files(solution, replace(item.parts, sealed=seal[::-1])).items():
            ctx.write_file(f"{folder}/{name}", text)
        try:
            return self._built(item, folder, ctx) or self._ran(item.language, folder, seal, ctx)
        finally:
            ctx.terminal(f"rm -rf {folder}")

    def _built(self, item: CodingTask, folder: str, ctx: ToolContext) -> Reward | None:
        """Compile; a reward where that fails.

        Raises:
            InfraFailed: The sandbox lacks what the task needs.
        """
        language = item.language
        script = _PROBE.format(
            needs=language.needs,
            folder=folder,
            probe=language.probe(item.parts),
            build=language.build,
            untested=_UNTESTED,
            unbuilt=_UNBUILT,
        )
        built = ctx.terminal(script, timeout=self.config.build_timeout)
        if built["exit_code"] == _UNTESTED:
            raise InfraFailed(
                f"the sandbox lacks {language.needs}, or a library that {item.name} needs: use an image with it "
                f"({built['output'].strip()[-500:]})",
                retryable=False,
            )
        if built["exit_code"] == 0:
            return None
        return Reward(0.0, {"tests": "not built", "output": built["output"][-2000:]})

    def _ran(self, language: Language, folder: str, seal: str, ctx: ToolContext) -> Reward:
        config = self.config
        script = _RUN.format(
            untested=_UNTESTED,
            folder=folder,
            seconds=int(config.test_timeout) + 1,
            limit_memory=f"ulimit -v {config.test_memory_mb * 1024}" if language.limit_memory else ":",
            run=language.run,
        )
        ran = ctx.terminal(script, timeout=config.test_timeout)
        passed = ran["exit_code"] == 0 and seal in ran["output"]
        return Reward(
            float(passed), {"tests": "passed" if passed else ran["reason"], "output": ran["output"][-2000:]}
        )


def _web() -> list[str]:
    try:
        resolve_toolsets(["web"])
    except ToolsetUnavailableError:
        return []
    return ["web"]


def main() -> NoReturn:
    """The command `swe-env`."""
    HermesSweEnv.cli()


if __name__ == "__main__":
    main()
