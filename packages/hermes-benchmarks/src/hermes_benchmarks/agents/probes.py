"""Agents that try to score without solving anything, to test the verifier with.

Each plays one bash script of `probe_scripts/` in its sandbox, as root, and then says that it is done. A probe that
scores more than 0 has found a hole. They change system files: they run in containers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hermes_envs import AgentResult, StopReason
from hermes_envs.harbor.rollout import WITHOUT_IMAGES

from hermes_benchmarks.agents import RunAgent
from hermes_benchmarks.errors import UsageError

if TYPE_CHECKING:
    from hermes_envs import RolloutSession

    from hermes_benchmarks.config import EvaluationConfig

_SECONDS = 120.0

# `ld-preload` needs a library, and most images have no compiler: this is one for x86-64 Linux, compressed. Its C source is
# two functions, run at the start and at the end of every process, that write "1" into /logs/verifier/reward.txt.
_LIBRARY = (
    "eNrtWD1vE0EQnTvHwRiwaZDChyM3KKDA2mcRCSEFEQWICzdAQ2et43N8Uu4M6wvYFQ0ULiKl5AfwIywKFEEBZUSBUqbhJ4BE"
    "Q9iLZ8LtyieHj3T7pL13s7dvdm/mrph5ca9237YsIKTgNvy2AO4gvz4bn7sJaXk9A6cP1qYhGU9slQH9RLppOXZyI3tnVuWy"
    "pTLpbNTtoW5vVuWipXIG5Q++hs1pODrodR9K3dQfnJOOa8XG34D80/mzGL9dbf4TbrA0jBa8W5LXt2/kXHVz0ZcTtcF2Pl0d"
    "fKy+2u4VhtHa6uZCcPDgfT7tfB6moqnBl3z6wxgP80kero31UFrvrHVLz1zhtTxXlIT7nIsmC3shOFkwMDAwMDAwMDAwMDD4"
    "z6A6ieqi81o9dRHU+ukCqHXVJe35t5/7nYgfoz+qdbfQppqyh3YW1DrwFPIM8gmqp7X6tIx8Ulv/Y3+0v31M8VpZXr5VvHLX"
    "bXg8KDoVVmHl686N+abbcCobzlWcAmDddjcUIW8AWws2WJt328Ca/aDb90ccCmDCXeeRASx0ZdXHRKfJQw7MbddbgvsuMC/w"
    "wjoXgveBtaRB91LEfW8V2GrH990g/Of3iuL+XcaO4kb5I6Y821q+CefQh63ll3jmsF8yynVGy1sBn9na97Kl9QkAxtuX5ZiK"
    "6el7IS4nnJ/2L8V6LPH/gfjlhP0XcK6Cds1WuZCgJ17EezupD6RBj/+KHDmModJ3yY1fn9H4kRz5mJ7+790j6usYO9If9ply"
    "an8ppemob9TG9y8nNJbmJsTPivmOYw71Tyfk7xf+u5U7"
)


def probe_agent(name: str, config: EvaluationConfig) -> RunAgent:
    """The probe `name` as an agent.

    Raises:
        UsageError: The sandboxes are not containers.
    """
    if (config.env.terminal_backend or "local") in WITHOUT_IMAGES:
        raise UsageError(f"agent {name} changes system files: run it in containers, with --backend docker")
    return RunAgent(lambda task: partial(play, name))


async def play(name: str, messages: Sequence[dict[str, Any]], session: RolloutSession) -> AgentResult:
    """Play one probe in the session's sandbox."""
    if session.sandbox.backend in WITHOUT_IMAGES:
        raise UsageError(f"the probe {name} changes system files: it runs in containers only")
    folder = files("hermes_benchmarks.agents").joinpath("probe_scripts")
    script = folder.joinpath(f"{name}.bash").read_text()
    await session.sandbox.write_bytes("/var/tmp/forge.bash", folder.joinpath("forge.bash").read_bytes())
    done = await session.sandbox.exec(script, env={"LIBRARY": _LIBRARY}, timeout=_SECONDS, merge=True)
    said = f"{name} ended with exit code {done.exit_code}\n{done.output[-2000:]}"
    return AgentResult(
        messages=[*messages, {"role": "assistant", "content": said}], stop_reason=StopReason.finished
    )


reward_symlink = partial(probe_agent, "reward-symlink")
conftest = partial(probe_agent, "conftest")
path_hijack = partial(probe_agent, "path-hijack")
binary_trojan = partial(probe_agent, "binary-trojan")
sitecustomize = partial(probe_agent, "sitecustomize")
ld_preload = partial(probe_agent, "ld-preload")
late_writer = partial(probe_agent, "late-writer")
git_history = partial(probe_agent, "git-history")
test_edit = partial(probe_agent, "test-edit")

PROBES = {
    factory.args[0]: factory
    for factory in (
        *(reward_symlink, conftest, path_hijack, binary_trojan, sitecustomize),
        *(ld_preload, late_writer, git_history, test_edit),
    )
}
"""The probes by name, each the factory of an agent."""
