"""The environments' commands without the extra they need."""

import logging
import os
import subprocess
import sys
import types

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


def test_a_command_leaves_the_environment_alone_and_transformers_quiet(monkeypatch, caplog):
    stand_in = types.ModuleType("talker")
    logger = logging.getLogger("transformers")
    stand_in.main = lambda: [
        logger.warning(text) for text in ("PyTorch was not found. Models", "a real warning")
    ]
    monkeypatch.setitem(sys.modules, "hermes_envs.atropos.environments.terminal_test", stand_in)
    monkeypatch.setattr(logger, "filters", [])
    monkeypatch.setattr(logger, "propagate", True)
    before = dict(os.environ)
    commands.terminal_test()
    assert dict(os.environ) == before
    assert {record.message for record in caplog.records if record.name == logger.name} == {"a real warning"}


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
