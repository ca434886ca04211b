"""Answer questions by searching and reading the web."""

import random
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from pydantic import Field

from hermes_envs.atropos.base_env import HermesAgentBaseEnv
from hermes_envs.atropos.cli import default_server
from hermes_envs.atropos.config import HermesAgentEnvConfig
from hermes_envs.atropos.datasets import load_rows
from hermes_envs.atropos.library import APIServerConfig
from hermes_envs.clients import OpenAIClient
from hermes_envs.config import ConfigError
from hermes_envs.context import ToolContext
from hermes_envs.result import AgentResult
from hermes_envs.spec import Reward

from .answers import final_answer, judged_same, matches

_PROMPT = """\
{question}

Search the web and read pages until you are sure. End your last message with one line:
Answer: <the answer, as short as it can be>"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its accepted answers."""

    name: str
    text: str
    answers: tuple[str, ...]


SAMPLE = (
    Question("python-year", "In which year was Python 1.0 released?", ("1994",)),
    Question(
        "tallest-1931",
        "Which building was the tallest in the world at the end of 1931?",
        ("Empire State Building",),
    ),
    Question(
        "curium",
        "After which two scientists is the element with atomic number 96 named?",
        ("Marie and Pierre Curie",),
    ),
)
"""Questions to try the environment with; give a dataset for training."""


class WebResearchEnvConfig(HermesAgentEnvConfig):
    """What judging answers needs besides."""

    answer_field: str = Field(
        default="answer", description="Column of the answer, or of a list of accepted ones"
    )
    eval_size: int = Field(default=50, ge=0, description="Rows kept for evaluation, never trained on")
    efficiency_weight: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="The part of a right answer's reward that its tool calls can cost",
    )
    judge_model: str | None = Field(
        default=None, description="Judge for answers that do not match; not the policy"
    )
    judge_base_url: str | None = Field(default=None, description="The judge's server")
    judge_api_key: str | None = Field(default=None, description="The judge's key")


class WebResearchEnv(HermesAgentBaseEnv[WebResearchEnvConfig]):
    """Questions to be answered from the web, judged by a normalised match and, where configured, by a judge model.

    The reward of a right answer is `1 - efficiency_weight * calls / max_agent_turns`, with `calls` the number of tool
    calls, at most `max_agent_turns`; of a wrong one 0. Being brief never pays unless the answer is right.
    """

    name = "web-research"
    env_config_cls = WebResearchEnvConfig

    judge: OpenAIClient | None = None

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
        """The web toolset and room for some pages."""
        config = WebResearchEnvConfig(
            enabled_toolsets=["web"], prompt_field="question", max_agent_turns=15, max_token_length=4096
        )
        return config, [default_server()]

    async def setup(self) -> None:
        """Load the questions and connect the judge."""
        config = self.config
        self.iter = 0
        self.judge = self._judge_client()
        if config.dataset_name is None:
            self.train, self.held_out = list(SAMPLE), list(SAMPLE)
            return
        rows = load_rows(config.dataset_name, config.dataset_split)
        questions = [self._question(row, index) for index, row in enumerate(rows)]
        random.Random(config.seed or 0).shuffle(questions)
        kept = min(config.eval_size, len(questions) // 2)
        self.held_out, self.train = questions[:kept] or questions, questions[kept:]
        if not self.train:
            raise ConfigError(f"{config.dataset_name} has no question to train on")

    async def get_next_item(self) -> Question:
        """The questions in turn, without end."""
        question = self.train[self.iter % len(self.train)]
        self.iter += 1
        return question

    def format_prompt(self, item: Question) -> str:
        """The question, and how to mark the answer."""
        return _PROMPT.format(question=item.text)

    async def compute_reward(self, item: Question, result: AgentResult, ctx: ToolContext) -> Reward:
        """See the class."""
        given = final_answer(result.messages)
        matched = matches(given, item.answers)
        right = matched
        if given and not matched and self.judge is not None:
            right = await judged_same(self.judge, item.text, item.answers, given)
        calls = sum(len(message.get("tool_calls") or ()) for message in result.messages)
        cost = self.config.efficiency_weight * min(1.0, calls / self.config.max_agent_turns)
        details = {"answer": given, "matched": matched, "judged": right and not matched, "tool_calls": calls}
        return Reward(1.0 - cost if right else 0.0, details)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """The questions kept for evaluation."""
        await self.evaluate_items(self.held_out)

    async def aclose(self) -> None:
        """Close the judge's connections too."""
        await super().aclose()
        if self.judge is not None:
            await self.judge.aclose()

    def _question(self, row: dict[str, Any], index: int) -> Question:
        try:
            text, answer = row[self.config.prompt_field], row[self.config.answer_field]
        except KeyError as error:
            raise ConfigError(
                f"{self.config.dataset_name} has no column {error}: set --env.prompt_field and --env.answer_field to "
                f"two of {', '.join(row)}"
            ) from error
        answers = cast("list[Any]", answer) if isinstance(answer, list) else [answer]
        return Question(str(row.get("id", index)), str(text), tuple(str(one) for one in answers))

    def _judge_client(self) -> OpenAIClient | None:
        config = self.config
        if config.judge_model is None:
            return None
        if config.judge_model == self.policy.model and config.judge_base_url in (
            None,
            *self.policy.base_urls,
        ):
            raise ConfigError(
                "the judge must not be the policy itself: set --env.judge_model or --env.judge_base_url"
            )
        return OpenAIClient(config.judge_model, config.judge_base_url, config.judge_api_key)


def main() -> NoReturn:
    """The command `web-research`."""
    WebResearchEnv.cli()


if __name__ == "__main__":
    main()
