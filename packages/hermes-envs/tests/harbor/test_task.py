"""Reading task folders: every spelling, and what is said about a folder that is wrong."""

import logging
import os
from pathlib import Path

import pytest
from harbor_folders import make_task
from hermes_envs.harbor import TaskError, UnknownTask, UnsupportedTask, load_task, load_tasks
from hermes_envs.harbor.config import parse_config
from hermes_envs.harbor.table import Table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

OLD = """
version = "1.0"
[metadata]
difficulty = "medium"
category = "data"
tags = ["a", "b"]
[verifier]
timeout_sec = 900.0
[agent]
timeout_sec = 1200
[environment]
build_timeout_sec = 600.0
docker_image = "example/task:1"
cpus = 2
memory = "2G"
storage = "10G"
"""
NEW = """
schema_version = "1.4"
[task]
name = "org/task"
[metadata]
difficulty = "medium"
category = "data"
tags = ["a", "b"]
[verifier]
timeout_sec = 900.0
user = 1000
env = { TOKEN = "${HARBOR_TOKEN:-none}" }
[agent]
timeout_sec = 1200
user = "agent"
[environment]
build_timeout_sec = 600.0
docker_image = "example/task:1"
cpus = 2
memory_mb = 2048
storage_mb = 10240
gpus = 1
gpu_types = ["H100"]
network_mode = "allowlist"
allowed_hosts = ["example.org"]
workdir = "/srv"
env = { MODE = "x", LEVEL = 3 }
[environment.healthcheck]
command = "test -e /ready"
interval_sec = 0.5
retries = 7
[solution]
env = { KEY = "1" }
"""


def test_old_and_new_spellings_mean_the_same(tmp_path: Path) -> None:
    old = load_task(make_task(tmp_path, name="old", toml=OLD)).config
    new = load_task(make_task(tmp_path, name="new", toml=NEW)).config
    for config in (old, new):
        assert (config.agent_timeout, config.verifier_timeout, config.build_timeout) == (1200.0, 900.0, 600.0)
        assert (config.cpus, config.memory_mb, config.storage_mb) == (2.0, 2048, 10240)
        assert (config.category, config.difficulty, config.tags) == ("data", "medium", ("a", "b"))
        assert config.docker_image == "example/task:1"
    assert (old.version, old.network, old.gpus, old.local) == ("1.0", "open", 0, False)
    assert (new.version, new.network, new.allowed_hosts) == ("1.4", "allowlist", ("example.org",))
    assert (new.gpus, new.workdir, new.env) == (1, "/srv", {"MODE": "x", "LEVEL": "3"})
    assert (new.agent_user, new.verifier_user, new.solution_env) == ("agent", "1000", {"KEY": "1"})
    assert new.healthcheck is not None
    assert (new.healthcheck.command, new.healthcheck.interval, new.healthcheck.retries) == (
        "test -e /ready",
        0.5,
        7,
    )


@pytest.mark.parametrize(
    ("lines", "network"),
    [
        ("allow_internet = false", "none"),
        ("allow_internet = true", "open"),
        ('network_mode = "no-network"', "none"),
    ],
)
def test_both_ways_of_closing_the_network(tmp_path: Path, lines: str, network: str) -> None:
    assert load_task(make_task(tmp_path, toml=f"[environment]\n{lines}\n")).config.network == network


def test_unknown_keys_warn_and_name_the_nearest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    toml = OLD + 'docker_imag = "x"\n[extra]\nanything = 1\n'
    with caplog.at_level(logging.WARNING, logger="hermes_envs.harbor"):
        task = load_task(make_task(tmp_path, toml=toml))
    assert "unknown key environment.docker_imag is ignored (did you mean docker_image?)" in task.warnings
    assert any(warning.startswith("unknown key extra is ignored") for warning in task.warnings)
    assert "task.toml: unknown key environment.docker_imag" in caplog.text
    assert task.config.docker_image == "example/task:1"


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ("version = ", None),
        ('[agent]\ntimeout_sec = "soon"', "agent.timeout_sec"),
        ("[agent]\ntimeout_sec = -1", "agent.timeout_sec"),
        ("[verifier]\ntimeout_sec = nan", "verifier.timeout_sec"),
        ("[environment]\nmemory = 2", "environment.memory"),
        ('[environment]\nmemory = "much"', "environment.memory"),
        ('[environment]\nmemory = "2G"\nmemory_mb = 1024', "environment.memory"),
        ("[environment]\ndocker_image = 5", "environment.docker_image"),
        ('[environment]\nnetwork_mode = "offline"', "environment.network_mode"),
        ("[environment]\nenv = { A = true }", "environment.env.A"),
        ("[environment.healthcheck]\nretries = 1", "environment.healthcheck.command"),
        ("agent = 5", "agent"),
        (f"[agent]\ntimeout_sec = {'9' * 400}", "agent.timeout_sec"),
        (f"[agent]\ntimeout_sec = {'9' * 5000}", None),
        (f"a = {'[' * 3000}", None),
        ("[environment]\ncpus = 0", "environment.cpus"),
        ("[environment]\nmemory_mb = 0", "environment.memory_mb"),
        ('[environment]\nmemory = "-5G"', "environment.memory"),
        ('[environment]\nmemory = "1e300G"', "environment.memory"),
        ('[environment]\nworkdir = "here"', "environment.workdir"),
        ('[environment.env]\n"A=B" = "x"', "environment.env.'A=B'"),
        ('[solution.env]\nA = "x\\u0000y"', "solution.env.'A'"),
    ],
)
def test_a_malformed_file_names_itself_and_the_key(tmp_path: Path, toml: str, key: str | None) -> None:
    path = make_task(tmp_path, toml=toml)
    with pytest.raises(TaskError) as error:
        load_task(path)
    assert str(path / "task.toml") in str(error.value)
    assert error.value.key == key
    assert key is None or key in str(error.value)


@pytest.mark.parametrize(
    ("toml", "word"),
    [
        ('[[steps]]\nname = "one"', "multi-step"),
        ('[environment]\nos = "windows"', "Linux"),
        ('[verifier]\nenvironment_mode = "separate"', "separate verifier"),
        ('[verifier]\nnetwork_mode = "no-network"', "one phase"),
    ],
)
def test_what_is_not_supported_is_refused_in_plain_words(tmp_path: Path, toml: str, word: str) -> None:
    with pytest.raises(UnsupportedTask, match=word):
        load_task(make_task(tmp_path, toml=toml))


@pytest.mark.parametrize("missing", ["task.toml", "instruction.md", "tests/test.sh"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    path = make_task(tmp_path)
    (path / missing).unlink()
    with pytest.raises(TaskError, match=missing.rpartition("/")[2]):
        load_task(path)


def test_a_task_needs_an_image_or_a_recipe(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="Dockerfile"):
        load_task(make_task(tmp_path, dockerfile=None))
    assert load_task(make_task(tmp_path, name="image", dockerfile=None, toml=OLD)).config.docker_image


def test_folders_are_found_chosen_and_left_out(tmp_path: Path) -> None:
    for name in ("regex-log", "regex-chess", "fix-git"):
        make_task(tmp_path, name=name)
    (tmp_path / "README.md").write_text("no task")
    (tmp_path / "notes").mkdir()
    assert [task.name for task in load_tasks(tmp_path)] == ["fix-git", "regex-chess", "regex-log"]
    assert [task.name for task in load_tasks(tmp_path, only=["regex-log", "fix-git"], skip=["fix-git"])] == [
        "regex-log"
    ]
    assert [task.name for task in load_tasks(tmp_path / "fix-git")] == ["fix-git"]
    with pytest.raises(UnknownTask, match="no task 'regexlog': did you mean regex-log"):
        load_tasks(tmp_path, only=["regexlog"])
    with pytest.raises(TaskError, match="no such folder"):
        load_tasks(tmp_path / "nowhere")
    with pytest.raises(TaskError, match="no task here"):
        load_tasks(tmp_path / "notes")


def test_a_task_behind_a_link_has_the_links_name(tmp_path: Path) -> None:
    stored = make_task(tmp_path / "store", name="abc123")
    (tmp_path / "tasks").mkdir()
    for name in ("mine", "other"):
        (tmp_path / "tasks" / name).symlink_to(stored)
    tasks = load_tasks(tmp_path / "tasks")
    assert [task.name for task in tasks] == ["mine", "other"]
    assert tasks[0].checksum == load_task(stored).checksum
    assert load_task(tmp_path / "tasks/mine").name == "mine"


@pytest.mark.parametrize(
    ("file", "target", "fits"),
    [
        ("tests/test.sh", "../../blobs/test.sh", False),
        ("tests/test.sh", "{0}/blobs/test.sh", False),
        ("tests/data.txt", "../../blobs/test.sh", False),
        ("tests/data.txt", "test.sh", True),
        ("environment/shell", "/bin/sh", True),
    ],
)
def test_a_link_that_no_container_can_follow_is_refused(
    tmp_path: Path, file: str, target: str, fits: bool
) -> None:
    path = make_task(tmp_path)
    (tmp_path / "blobs").mkdir()
    (path / "tests/test.sh").rename(tmp_path / "blobs/test.sh")
    (path / "tests/test.sh").write_text("#!/bin/bash\n")
    (path / file).unlink(missing_ok=True)
    (path / file).symlink_to(target.format(tmp_path))
    if fits:
        assert load_task(path).name == "answer"
    else:
        with pytest.raises(TaskError, match=f"{file}.*cp -rL"):
            load_task(path)


def test_a_broken_task_matters_only_when_it_is_chosen(tmp_path: Path) -> None:
    make_task(tmp_path, name="good")
    make_task(tmp_path, name="many", toml='[[steps]]\nname = "one"')
    assert [task.name for task in load_tasks(tmp_path, skip=["many"])] == ["good"]
    with pytest.raises(UnsupportedTask, match="many"):
        load_tasks(tmp_path)
    (make_task(tmp_path, name="compose") / "environment/docker-compose.yaml").touch()
    with pytest.raises(UnsupportedTask, match="several containers"):
        load_tasks(tmp_path, only=["compose"])


def test_the_checksum_follows_content_names_and_modes(tmp_path: Path) -> None:
    first = load_task(make_task(tmp_path / "a"))
    second = load_task(make_task(tmp_path / "b"))
    assert first.checksum == second.checksum
    os.utime(second.path / "task.toml", (0, 0))
    (second.tests_dir / "__pycache__").mkdir()
    (second.tests_dir / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert load_task(second.path).checksum == first.checksum
    (second.tests_dir / "test.sh").chmod(0o755)
    changed = {load_task(second.path).checksum}
    (second.tests_dir / "data").write_text("x")
    changed.add(load_task(second.path).checksum)
    (second.tests_dir / "data").rename(second.tests_dir / "moved")
    changed.add(load_task(second.path).checksum)
    assert len(changed | {first.checksum}) == 4


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["timeout_sec", "memory", "cpus", "env", "network_mode", "healthcheck", "user", "docker_image"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["agent", "verifier", "environment", "metadata", "solution", "steps", "version"]),
        VALUES | st.dictionaries(KEYS, VALUES, max_size=4),
        max_size=5,
    )
)
def test_any_table_gives_settings_or_a_task_error(values: dict[str, object]) -> None:
    table = Table(values, Path("task.toml"))
    try:
        config = parse_config(table)
    except TaskError as error:
        assert "task.toml" in str(error)
    else:
        assert config.verifier_timeout is None or config.verifier_timeout >= 0
        assert isinstance(list(table.unknown()), list)


@pytest.mark.tb2
def test_every_real_terminal_bench_task_loads() -> None:
    tasks = load_tasks(os.environ["HERMES_TB2_TASKS"])
    assert len(tasks) == 89
    assert not [task.warnings for task in tasks if task.warnings]
    assert all(task.has_solution and task.config.docker_image for task in tasks)
    assert len({task.checksum for task in tasks}) == 89
    by_difficulty = [task.config.difficulty for task in tasks]
    assert (by_difficulty.count("easy"), by_difficulty.count("medium"), by_difficulty.count("hard")) == (
        4,
        55,
        30,
    )


def test_an_instruction_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = make_task(tmp_path)
    (path / "instruction.md").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match=r"instruction\.md: not UTF-8"):
        load_task(path)


@pytest.mark.parametrize("name", [b"two\nlines", b"\x1b[2J", b"\xff", b"a" * 201])
def test_a_name_that_no_terminal_can_show_is_refused(tmp_path: Path, name: bytes) -> None:
    path = make_task(tmp_path).rename(tmp_path / os.fsdecode(name))
    with pytest.raises(TaskError, match="rename it") as caught:
        load_task(path)
    assert str(caught.value).isprintable()
