"""swe-env: hidden tests in six languages, with real toolchains where there are any."""

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from atropos_world import TOKENIZER, judged, make_env, writes
from hermes_envs.atropos.environments.human_eval import coding_task, installed_rows
from hermes_envs.atropos.environments.languages import LANGUAGES
from hermes_envs.atropos.environments.swe import HermesSweEnv
from hermes_envs.outcome import Outcome
from policy_server import PolicyServer, call

pytestmark = pytest.mark.atropos


def swe_env(**settings):
    settings = {"enabled_toolsets": ["terminal", "file"], "test_timeout": 100, **settings}
    return make_env(HermesSweEnv, "http://127.0.0.1:9", **settings)


async def grades(env, tasks, text_of):
    async with asyncio.TaskGroup() as group:
        places = asyncio.Semaphore(4)

        async def one(task):
            async with places:
                return await judged(env, task, writes("solution.py", text_of(task)))

        running = [group.create_task(one(task)) for task in tasks]
    return [task.result() for task in running]


def tasks_of(count: int | None = None):
    return [coding_task(row, "python") for row in installed_rows()[:count]]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_canonical_solutions_pass_and_empty_ones_fail():
    env, tasks = swe_env(), tasks_of()
    passed = await grades(env, tasks, lambda task: task.solution)
    assert [task.name for task, rollout in zip(tasks, passed, strict=True) if rollout.reward != 1.0] == []
    failed = await grades(env, tasks, lambda task: "pass\n")
    assert [task.name for task, rollout in zip(tasks, failed, strict=True) if rollout.reward != 0.0] == []


async def test_a_sample_of_canonical_solutions_passes():
    env = swe_env()
    tasks = [tasks_of()[number] for number in (0, 32, 38, 160)]
    assert [rollout.reward for rollout in await grades(env, tasks, lambda task: task.solution)] == [1.0] * 4
    assert [rollout.reward for rollout in await grades(env, tasks, lambda task: "")] == [0.0] * 4


@pytest.mark.parametrize(
    "cheat",
    [
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "raise SystemExit",
        "def check(f): pass",
        "while True: pass",
        "import os, sys; print(sys.stdin.read(), flush=True); os._exit(0)",
        "import os, sys; print(sys.argv, dict(os.environ), open(__file__).read(), flush=True); os._exit(0)",
        "import os, sys; f = sys._getframe(); print(f.f_globals, f.f_code.co_consts, flush=True); os._exit(0)",
    ],
)
async def test_cheats_do_not_pass(cheat):
    env = swe_env(test_timeout=2)
    rollout = await judged(env, tasks_of(1)[0], writes("solution.py", cheat))
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 0.0)


async def test_tests_are_hidden_and_do_not_see_the_agents_folder():
    env = swe_env()
    task = tasks_of(1)[0]
    assert "check" not in env.format_prompt(task) and "assert" not in env.format_prompt(task)

    async def act(session):
        await session.sandbox.write_bytes("solution.py", task.solution.encode())
        await session.sandbox.write_bytes("typing.py", b"raise RuntimeError('shadowed')")

    assert (await judged(env, task, act)).reward == 1.0


# Rows in HumanEvalPack's columns and habits, of a task of our own: the tests rely on what the prompt imports, Go's
# assert with testify, Rust's prompts name crates.
PACK = {
    "python": {
        "prompt": 'from typing import List\n\n\ndef add_all(numbers: List[int]) -> int:\n    """ Add the numbers.\n    """\n',
        "declaration": "from typing import List\n\n\ndef add_all(numbers: List[int]) -> int:\n",
        "canonical_solution": "    return 0 + sum(numbers)\n",
        "test": "def check(add_all):\n    empty: List[int] = []\n    assert add_all(empty) == 0\n    assert add_all([1, 2]) == 3\n\ncheck(add_all)",
    },
    "js": {
        "prompt": "/* Add the numbers.\n  */\nconst addAll = (numbers) => {\n",
        "declaration": "\nconst addAll = (numbers) => {\n",
        "canonical_solution": "  return 0 + numbers.reduce((a, b) => a + b, 0);\n}\n\n",
        "import": "const md5 = require('js-md5')",
        "test": "const testAddAll = () => {\n  console.assert(addAll([]) === 0)\n  console.assert(addAll([1, 2]) === 3)\n"
        "  console.assert(md5('') === 'd41d8cd98f00b204e9800998ecf8427e')\n}\n\ntestAddAll()\n",
    },
    "java": {
        "prompt": "import java.util.*;\nimport java.lang.*;\n\nclass Solution {\n    /**\n    Add the numbers.\n     */\n"
        "    public int addAll(List<Integer> numbers) {\n",
        "declaration": "import java.util.*;\nimport java.lang.*;\n\nclass Solution {\n    public int addAll(List<Integer> numbers) {\n",
        "canonical_solution": "        return 0 + numbers.stream().mapToInt(n -> n).sum();\n    }\n}",
        "test": "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
        "        List<Boolean> correct = Arrays.asList(\n                s.addAll(new ArrayList<>()) == 0,\n"
        "                s.addAll(Arrays.asList(1, 2)) == 3\n        );\n        if (correct.contains(false)) {\n"
        "            throw new AssertionError();\n        }\n    }\n}\n",
    },
    "go": {
        "prompt": 'import (\n    "sort"\n)\n\n// Add the numbers.\nfunc AddAll(numbers []int) int {\n',
        "declaration": "\nfunc AddAll(numbers []int) int {\n",
        "canonical_solution": "    sum := 0\n    sort.Ints(numbers)\n    for _, number := range numbers {\n        sum += number\n    }\n"
        "    return 0 + sum\n}\n\n",
        "import": 'import (\n    "sort"\n)',
        "test_setup": 'package main\n\nimport (\n    "sort"\n    "testing"\n    "github.com/stretchr/testify/assert"\n)',
        "test": "func TestAddAll(t *testing.T) {\n    assert := assert.New(t)\n    numbers := []int{2, 1}\n    sort.Ints(numbers)\n"
        "    assert.Equal(0, AddAll([]int{}))\n    assert.Equal(3, AddAll(numbers))\n}\n",
    },
    "cpp": {
        "prompt": "/*\nAdd the numbers.\n*/\n#include<stdio.h>\n#include<vector>\nusing namespace std;\n#include<algorithm>\n"
        "int add_all(vector<int> numbers){\n",
        "declaration": "#include<stdio.h>\n#include<vector>\nusing namespace std;\n#include<algorithm>\nint add_all(vector<int> numbers){\n",
        "canonical_solution": "    int sum = 0;\n    for (int number : numbers) sum += number;\n    return 0 + sum;\n}\n",
        "test_setup": "#undef NDEBUG\n#include<assert.h>",
        "test": "#undef NDEBUG\n#include<assert.h>\nint main(){\n    vector<int> none = {};\n    assert (add_all(none)==0);\n"
        "    assert (add_all({1, 2})==3);\n}\n",
    },
    "rust": {
        "prompt": "fn main(){ \n } \n \nuse std::{slice::Iter, collections::HashSet};\nuse rand::Rng;\nuse regex::Regex;\nuse md5;\n\n"
        "/*\n Add the numbers.\n*/\nfn add_all(numbers:Vec<i32>) -> i32{\n\n",
        "declaration": "use std::{slice::Iter, collections::HashSet};\nuse rand::Rng;\nuse regex::Regex;\nuse md5;\n\n"
        "fn add_all(numbers:Vec<i32>) -> i32{\n\n",
        "canonical_solution": "    0 + numbers.iter().sum::<i32>()\n}\n",
        "import": "fn main(){ \n } \n",
        "test": "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn test_add_all() {\n"
        "        let mut rng = rand::thread_rng();\n        let one: i32 = rng.gen_range(1, 2);\n"
        "        assert_eq!(add_all(vec![]), 0);\n        assert_eq!(add_all(vec![one, 2]), 3);\n"
        "    }\n}\n",
    },
}
# What agents add to a file: a program of its own, tests of its own, a public class.
DEMONSTRATION = {
    "python": "\nif __name__ == '__main__':\n    print(add_all([1]))\n",
    "js": "\nconst testAddAll = () => addAll([1])\nconsole.log(testAddAll())\n",
    "java": "",
    "go": "\nfunc main() { println(AddAll([]int{1})) }\n",
    "cpp": "\nint main() { return add_all({1}) == 1 ? 0 : 1; }\n",
    "rust": "\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn mine() { assert_eq!(add_all(vec![1]), 1); }\n}\n",
}


# Programs that end before the tests do, with success and with what they find, or what a harness of tests would print.
CHEATS = {
    "python": "import os, sys\nprint(sys.stdin.read(), open(__file__).read(), flush=True)\nos._exit(0)\n",
    "js": "const fs = require('fs')\nfs.writeSync(1, fs.readFileSync(0, 'utf8') + fs.readFileSync(__filename, 'utf8'))\n"
    "process.exit(0)\n",
    "java": "import java.util.*;\nclass Solution {\n    static {\n        try { System.out.println(new String(System.in.readAllBytes())); }\n"
    "        catch (java.io.IOException error) { }\n        System.exit(0);\n    }\n"
    "    public int addAll(List<Integer> numbers) { return 0; }\n}",
    "go": 'import (\n    "fmt"\n    "io"\n    "os"\n)\n\nfunc init() {\n    io.Copy(os.Stdout, os.Stdin)\n'
    '    fmt.Println("--- PASS: TestAddAll\\nPASS")\n    os.Exit(0)\n}\n\nfunc AddAll(numbers []int) int { return 0 }\n',
    "cpp": "#include <cstdlib>\n#include <iostream>\n#include <vector>\nint cheat() {\n    std::cout << std::cin.rdbuf() << std::endl;\n"
    "    std::exit(0);\n}\nint now = cheat();\nint add_all(std::vector<int> numbers) { return 0; }\n",
    "rust": "use rand::Rng;\n\nfn add_all(numbers:Vec<i32>) -> i32{\n    use std::io::{Read, Write};\n    let mut given = String::new();\n"
    "    std::io::stdin().read_to_string(&mut given).unwrap();\n"
    '    write!(std::io::stdout(), "{}\\ntest result: ok. 1 passed\\n", given).unwrap();\n    std::process::exit(0)\n}\n',
}


def pack_task(language, tmp_path):
    """A row of the language, by way of a .jsonl like the dataset's own."""
    row = {
        "task_id": f"{language}/0",
        "entry_point": "add_all",
        "import": "",
        "test_setup": "",
        **PACK[language],
    }
    path = tmp_path / f"{language}.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


CRATES = {
    "rand": (
        "0.4.6",
        "pub struct ThreadRng;\npub fn thread_rng() -> ThreadRng { ThreadRng }\n"
        "pub trait Rng { fn gen_range(&mut self, low: i32, high: i32) -> i32 { low } }\nimpl Rng for ThreadRng {}\n",
    ),
    "regex": ("1.0.0", "pub struct Regex;\n"),
    "md5": ("0.7.0", ""),
}


def vendored(folder):
    """A cargo home with stand-ins of the crates that Rust's rows import, as an image without a network would have."""
    for name, (version, text) in CRATES.items():
        crate = folder / "vendor" / name
        (crate / "src").mkdir(parents=True)
        (crate / "src" / "lib.rs").write_text(text)
        (crate / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "{version}"\n')
        (crate / ".cargo-checksum.json").write_text('{"files": {}, "package": null}')
    (folder / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "{folder / "vendor"}"\n'
    )
    return folder


def toolchains(tmp_path) -> dict[str, str]:
    """What toolchains need to know in a sandbox whose home folder is another."""
    rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    return {
        "RUSTUP_HOME": rustup,
        "CARGO_HOME": str(vendored(tmp_path / "cargo")),
        "PATH": os.environ["PATH"],
    }


SLOW_TO_BUILD = ("cpp", "java", "go", "rust")


@pytest.mark.parametrize(
    "language",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_TO_BUILD else []) for name in PACK],
)
@pytest.mark.timeout(600)
async def test_six_languages_where_the_toolchain_is(language, tmp_path):
    if shutil.which(LANGUAGES[language].needs) is None:
        pytest.skip(f"{LANGUAGES[language].needs} is not installed")
    env = swe_env(
        language=language,
        dataset_name=str(pack_task(language, tmp_path)),
        terminal_env=toolchains(tmp_path),
    )
    await env.setup()
    task = await env.get_next_item()
    name = f"solution.{task.language.suffix}"
    shown = env.format_prompt(task)
    assert "dd the numbers" in shown and "assert" not in shown and "0 + " not in shown
    right = await judged(env, task, writes(name, task.solution))
    assert right.reward == 1.0, (right.failure, right.reward_details)
    shows = await judged(env, task, writes(name, task.solution + DEMONSTRATION[language]))
    assert shows.reward == 1.0, (shows.failure, shows.reward_details)
    wrong = await judged(env, task, writes(name, task.solution.replace("0 + ", "1 + ")))
    assert wrong.reward == 0.0
    cheat = await judged(env, task, writes(name, CHEATS[language]))
    assert (cheat.outcome, cheat.reward) == (Outcome.completed, 0.0)
    assert cheat.reward_details["tests"] != "not built", cheat.reward_details
    broken = await judged(env, task, writes(name, "this is no program ("))
    assert (broken.outcome, broken.reward) == (Outcome.completed, 0.0)


async def test_a_policy_solves_a_row_with_its_tools(tmp_path):
    solution = PACK["python"]["declaration"] + PACK["python"]["canonical_solution"]
    path = pack_task("python", tmp_path)

    def reply(prompt: str) -> str:
        if "<tool_response>" in prompt:
            return "Done."
        return call("write_file", path="solution.py", content=solution)

    async with PolicyServer(TOKENIZER, reply) as server:
        env = make_env(
            HermesSweEnv,
            server.url,
            enabled_toolsets=["terminal", "file"],
            dataset_name=str(path),
            test_timeout=100,
        )
        await env.setup()
        (rollout,) = await env.rolling.run_group(await env.get_next_item(), env.rolling.group(size=1))
        assert rollout.reward == 1.0, (rollout.failure, rollout.reward_details)
        assert "check(" not in "".join(map(TOKENIZER.decode, server.prompts))


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
async def test_a_missing_library_is_no_verdict(tmp_path):
    env = swe_env(language="cpp", dataset_name=str(pack_task("cpp", tmp_path)))
    await env.setup()
    task = await env.get_next_item()
    parts = replace(task.parts, stub=f"#include <no/such/header.hpp>\n{task.parts.stub}")
    rollout = await judged(env, replace(task, parts=parts), writes("solution.cpp", task.solution))
    assert (rollout.outcome, rollout.reward) == (Outcome.infra_failed, None)
    assert "no/such/header.hpp" in rollout.failure.message


async def test_a_missing_toolchain_is_no_verdict():
    task = tasks_of(1)[0]
    task = replace(task, language=replace(task.language, needs="no-such-compiler"))
    rollout = await judged(swe_env(), task, writes("solution.py", "x = 1"))
    assert rollout.outcome is Outcome.infra_failed and rollout.reward is None
    assert "no-such-compiler" in rollout.failure.message
