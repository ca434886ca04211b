"""How a HumanEval solution is tested in each of HumanEvalPack's six languages.

The program prints a seal, drawn for this one run, once the tests have passed: a solution which ends the process early,
with whatever exit code and whatever it prints, has not passed. Until then the seal stands nowhere as it is to be printed:
the program holds it backwards, so that neither its input (there is none) nor its own text, files or memory give it
away to a solution that prints what it finds. A solution that knew how it is tested could turn it round.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .libraries import CARGO_TOML, CRATES, GO_MOD, JS_MD5, TESTIFY


@dataclass(frozen=True, slots=True)
class TestParts:
    """What a program is made of besides the solution.

    Attributes:
        test: The dataset's tests.
        entry_point: The function under test.
        setup: What the tests need before the solution (imports).
        stub: The task's own prompt; its imports and helpers are there for the tests too.
        sealed: The seal, backwards.
    """

    test: str
    entry_point: str
    setup: str = ""
    stub: str = ""
    sealed: str = ""


Files = Mapping[str, str]


def _nothing(parts: TestParts) -> str:
    return ":"


@dataclass(frozen=True, slots=True)
class Language:
    """A language's files and commands, all run in the tests' folder.

    Attributes:
        name: As in HumanEvalPack's configurations.
        title: As a person writes it.
        suffix: Of the solution's file.
        needs: The program that must be there.
        files: Solution and parts to the files of the test program, by name.
        run: Shell command that runs the tests, and ends with 0 where all have passed.
        build: Shell command before it, with a time limit of its own.
        probe: Shell command that fails where the sandbox lacks a library that the task itself asks for.
        limit_memory: Whether address space can be limited; some runtimes reserve more than they use.
    """

    name: str
    title: str
    suffix: str
    needs: str
    files: Callable[[str, TestParts], Files]
    run: str
    build: str = ":"
    probe: Callable[[TestParts], str] = _nothing
    limit_memory: bool = False


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def _lines(text: str, *starts: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith(starts))


def _python(solution: str, parts: TestParts) -> Files:
    called = f"check({parts.entry_point})"
    call = "" if parts.test.rstrip().endswith(called) else called
    end = f"import sys as _sys\n_sys.stdout.write('\\n' + ''.join(reversed('{parts.sealed}')) + '\\n')"
    prelude = _before_function(parts.stub)
    return {"program.py": _joined(prelude, solution, parts.setup, parts.test, call, end)}


def _before_function(stub: str) -> str:
    """What stands before the function under test: imports and helpers that its tests may use."""
    lines = stub.splitlines()
    last = max((at for at, line in enumerate(lines) if line.startswith("def ")), default=0)
    return "\n".join(lines[:last])


def _javascript(solution: str, parts: TestParts) -> Files:
    strict = (
        "console.assert = (ok, ...said) => { if (!ok) throw new Error(said.join(' ') || 'assertion failed') }"
    )
    end = f"console.log('\\n' + [...'{parts.sealed}'].reverse().join(''))"
    # In a block of their own the tests may name what the solution names too.
    tests = f"{{\n{_joined(parts.setup, parts.test)}}}"
    return {"program.js": _joined(strict, solution, tests, end), "node_modules/js-md5/index.js": JS_MD5}


_CPP_END = """\
#include <iostream>
#include <string>
int main() { hermes_tests_main(); std::string s = "SEALED"; std::cout << std::endl << std::string(s.rbegin(), s.rend()) << std::endl; }"""


def _cpp(solution: str, parts: TestParts) -> Files:
    headers = _lines(parts.stub, "#include", "using ")
    program = _joined(
        headers,
        "#define main hermes_solution_main",
        solution,
        "#undef main\n#define main hermes_tests_main",
        parts.setup,
        parts.test,
        "#undef main",
        _CPP_END.replace("SEALED", parts.sealed),
    )
    return {"program.cpp": program, "headers.cpp": headers + "\n"}


def _java(solution: str, parts: TestParts) -> Files:
    end = (
        "class HermesTests { public static void main(String[] a) throws Exception { Main.main(a); "
        f'System.out.println(); System.out.println(new StringBuilder("{parts.sealed}").reverse()); }} }}\n'
    )
    main = _joined(_lines(parts.stub, "import "), parts.setup, parts.test)
    return {"Solution.java": solution, "Main.java": main, "HermesTests.java": end}


_GO_END = """\
package main

import (
	"os"
	"testing"
)

func TestHermesSeal(t *testing.T) {
	seal := []byte("SEALED")
	for i, j := 0, len(seal)-1; i < j; i, j = i+1, j-1 {
		seal[i], seal[j] = seal[j], seal[i]
	}
	os.Stdout.Write(append(append([]byte("\\n"), seal...), '\\n'))
}
"""
"""The last file, and so the last test: one that fails before it makes the program fail, one that ends it ends this too."""


def _go(solution: str, parts: TestParts) -> Files:
    body = re.sub(r"(?m)^package\s+\w+\s*$", "", solution)
    tests = _joined(parts.setup, parts.test)
    if not re.search(r"(?m)^package\s", tests):
        tests = f'package main\n\nimport "testing"\n\n{tests}'
    return {
        "solution.go": f"package main\n\n{body}\n",
        "main_test.go": tests,
        "zz_seal_test.go": _GO_END.replace("SEALED", parts.sealed),
        "go.mod": GO_MOD,
        **TESTIFY,
    }


_RUST_END = """\
#[cfg(test)]
mod zz_hermes {
    #[test]
    fn seal() {
        use std::io::Write;
        let seal: String = "SEALED".chars().rev().collect();
        writeln!(std::io::stdout(), "\\n{}", seal).unwrap();
    }
}
"""
"""The last test by its name, as Go's is by its file's; what it writes past `print!` is not held back by the harness."""


def _rust(solution: str, parts: TestParts) -> Files:
    # The solution may have tests of its own, in the module that everybody calls so.
    tests = re.sub(r"\bmod\s+tests\b", "mod hermes_tests", _joined(parts.setup, parts.test))
    end = _RUST_END.replace("SEALED", parts.sealed)
    program = _joined("#![allow(dead_code, unused)]", solution, tests, end)
    crates = "".join(f'{name} = "{version}"\n' for name, version in _crates(program).items())
    return {"program.rs": program, "Cargo.toml": CARGO_TOML + crates}


def _crates(text: str) -> dict[str, str]:
    return {name: version for name, version in CRATES.items() if re.search(rf"\b{name}\b(::|;)", text)}


def _cpp_probe(parts: TestParts) -> str:
    return "g++ -fsyntax-only headers.cpp"


def _rust_probe(parts: TestParts) -> str:
    own = _crates(_joined(parts.stub, parts.setup, parts.test))
    return "cargo fetch --offline || cargo fetch" if own else ":"


LANGUAGES: Mapping[str, Language] = {
    language.name: language
    for language in (
        Language(
            "python", "Python", "py", "python3", _python, run="python3 -I program.py", limit_memory=True
        ),
        Language("js", "JavaScript", "js", "node", _javascript, run="node program.js"),
        Language(
            "cpp",
            "C++",
            "cpp",
            "g++",
            _cpp,
            run="./tests",
            build="g++ -std=c++17 -o tests program.cpp $(grep -q '<openssl/' program.cpp && echo -lcrypto)",
            probe=_cpp_probe,
            limit_memory=True,
        ),
        Language(
            "java",
            "Java",
            "java",
            "javac",
            _java,
            run="java -ea HermesTests",
            build="javac Solution.java Main.java HermesTests.java",
        ),
        Language(
            "go",
            "Go",
            "go",
            "go",
            _go,
            run="./tests -test.v",
            build="GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local go test -c -vet=off -o tests .",
        ),
        Language(
            "rust",
            "Rust",
            "rs",
            "cargo",
            _rust,
            run="cargo test --offline --lib -- --test-threads=1",
            build="cargo test --offline --lib --no-run",
            probe=_rust_probe,
        ),
    )
}
"""The languages by name."""
