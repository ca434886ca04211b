"""Killing a command whose process is not known must not reach anything else. Tried in a pid namespace of its own."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import hermes_sandbox
import pytest
from hermes_sandbox.backend import Tree
from hermes_sandbox.execute import kill_tree
from hermes_sandbox.jobs import Launcher

PROGRAM = Path(hermes_sandbox.__file__).parent / "runner" / "kill.bash"
SCRIPT = """
. {program}
HERMES_MARK=other setsid sleep 300 & bystander=$!
HERMES_MARK=mine sleep 300 & victim=$!
runs() {{ grep -qs "^sleep" /proc/$1/cmdline && grep -qs HERMES_MARK=$2 /proc/$1/environ; }}
until runs $bystander other && runs $victim mine; do :; done
signal_tree 9 mine 0 ''
wait $victim
echo "$alive $(kill -0 $bystander && echo bystander lives)"
signal_tree 9 no-such-mark 0 ''
echo "$alive"
"""

ORDER = """
. {program}
kill() {{ order="$order $3"; }}
exec {{told}}<> <(:)
HERMES_MARK=mine bash -c 'sleep 300 & first=$!; sleep 300 & echo $first $!; wait' >&$told & root=$!
read -r first second <&$told
signal_tree 15 mine $root ''
expected=" $root $(printf '%s\\n' $first $second | sort -n | tr '\\n' ' ')"
[ "$order " = "$expected" ] && echo in order || echo "$order, not $expected"
"""
IN_A_NAMESPACE = pytest.mark.skipif(
    subprocess.run(["unshare", "-fp", "--mount-proc", "true"], capture_output=True).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="needs a pid namespace, for a failure would end every process in sight",
)


@IN_A_NAMESPACE
def test_an_unknown_root_is_not_process_zero() -> None:
    done = in_a_namespace(SCRIPT)
    assert done.stdout == "1 bystander lives\n0\n", done.stderr


@IN_A_NAMESPACE
def test_a_parent_hears_of_it_before_its_children() -> None:
    """Else a script that waits for a child goes on as if that had died by itself."""
    done = in_a_namespace(ORDER)
    assert done.stdout == "in order\n", done.stderr


async def test_looks_that_take_long_are_few() -> None:
    """Else the grace of two seconds would become five on a host with many processes."""
    looks: list[int] = []

    class Slow(Launcher):
        async def signal_tree(self, tree: Tree, signal: int, *, user: str | None = None) -> int:
            looks.append(signal)
            await asyncio.sleep(0.1)
            return 0 if signal == 9 else 1

    await kill_tree(Slow(), Tree("mark"), grace=0.5)  # type: ignore[abstract]
    assert (looks[0], looks[-1]) == (15, 9)
    assert len(looks) <= 7


def in_a_namespace(script: str) -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "-fp", "--mount-proc", "bash", "-c", script.format(program=PROGRAM)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300)
