"""The verb `evaluate`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.options import How, What, Who, dotted
from hermes_benchmarks.cli.program import Program


def evaluate(
    *,
    what: What | None = None,
    who: Who | None = None,
    how: How | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    print_config: Annotated[bool, Parameter(negative="")] = False,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Run the benchmark, or the packaged sample of it.

    Any other setting is a dotted key, such as --env.max_agent_turns 60, --openai.base_url URL or --run.retries 0;
    --print-config lists them all. A YAML file overrides the defaults, the command line overrides both.

    Args:
        what: What runs.
        who: Who acts.
        how: How it runs.
        dry_run: Print the tasks, their images and an estimate of the cost, and exit.
        print_config: Print every setting in effect as YAML, and exit.
        program: The command.
    """
    from hermes_benchmarks.cli.running import run_to_end
    from hermes_benchmarks.cli.setup import choose, load
    from hermes_benchmarks.runner import Run

    evaluation = load(program, what.config if what else None, dotted(what, who, how))
    if print_config:
        from hermes_benchmarks.cli.printing import print_yaml

        return print_yaml(evaluation.config.to_dict())
    selection = choose(program, evaluation)
    if dry_run:
        from hermes_benchmarks.cli.dry_run import print_plan

        return print_plan(evaluation, selection)
    return run_to_end(program, evaluation, lambda: Run.start(evaluation, selection))
