"""The environments' commands without the extra they need."""

import subprocess
import sys

import pytest
from hermes_envs import commands


@pytest.mark.parametrize("name", ["terminal_test", "swe_env", "web_research", "harbor_env"])
def test_a_missing_extra_is_one_sentence(name, monkeypatch, capsys):
    for module in [module for module in sys.modules if module.startswith("hermes_envs.atropos")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "atroposlib", None)
    monkeypatch.setitem(sys.modules, "atroposlib.envs.base", None)
    with pytest.raises(SystemExit) as ended:
        getattr(commands, name)()
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert shown.startswith(f"{name.replace('_', '-')}: needs atroposlib")
    assert shown.count("\n") == 1
    assert "hermes-envs[atropos]" in shown


# The environment is a stand-in: loading the real one takes seconds and is not what is tested.
TALKER = """
import sys, types
talker = types.ModuleType("talker")
talker.main = lambda: print("line\\n" * 100_000)
sys.modules["hermes_envs.atropos.environments.terminal_test"] = talker
from hermes_envs.commands import terminal_test
terminal_test()
"""


def test_a_reader_that_has_gone_ends_it_quietly():
    with subprocess.Popen(
        [sys.executable, "-c", TALKER], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as gone:
        gone.stdout.close()
        assert gone.wait(100) == 141
        assert b"Traceback" not in gone.stderr.read()
