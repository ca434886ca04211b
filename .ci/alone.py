"""Build every package and prove that it stands alone on the layers below it.

A shared environment hides an undeclared import. So each wheel is installed into an empty environment, which
must then hold exactly the hermes distributions named here, every module of it is imported, and the
package's own tests run with nothing but what it declares.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTERS = [
    "pytest>=8.4",
    "pytest-asyncio>=1.2",
    "pytest-timeout>=2.4",
    "pytest-xdist>=3.8",
    "hypothesis>=6.140",
]
LAYERS: dict[str, set[str]] = {
    "hermes-parsers": set(),
    "hermes-tools": set(),
    "hermes-sandbox": set(),
    "hermes-envs": {"hermes-parsers", "hermes-tools", "hermes-sandbox"},
    "hermes-benchmarks": {"hermes-parsers", "hermes-tools", "hermes-sandbox", "hermes-envs"},
}
EXTRAS: dict[str, str] = {
    "hermes-tools": "[all]",
    "hermes-sandbox": "[all]",
    "hermes-envs": "[tokens]",
}
# What a package's tests use besides the package; nothing that the package itself might forget to declare.
TEST_LIBRARIES: dict[str, list[str]] = {
    "hermes-envs": ["numpy", "opentelemetry-sdk", "tenacity"],
    "hermes-benchmarks": ["jsonschema"],
}
# The adapter's tests load atroposlib while they are collected; the others are long, and look at behaviour, not at imports.
IGNORED: dict[str, list[str]] = {
    "hermes-envs": [
        "--ignore=packages/hermes-envs/tests/atropos",
        "--ignore=packages/hermes-envs/tests/rollout/test_faults.py",
    ],
    "hermes-benchmarks": ["--ignore=packages/hermes-benchmarks/tests/test_kills.py"],
}
HEAVY = (
    "not docker and not ssh and not singularity and not bwrap and not browser and not atropos and not slow"
)
# Modules that need an extra; everything else must import without one.
OPTIONAL = (
    "hermes_envs.atropos",
    "hermes_parsers.integrations",
    "hermes_tools.toolsets",
    "hermes_sandbox.backends",
    "hermes_envs.tokens",
)
IMPORT_ALL = """
import importlib, pkgutil, sys
root, optional = sys.argv[1], tuple(sys.argv[2].split(","))
package = importlib.import_module(root)
for module in pkgutil.walk_packages(package.__path__, root + "."):
    if not module.name.startswith(optional) and not module.name.endswith("__main__") and ".sample" not in module.name and ".testing" not in module.name:
        importlib.import_module(module.name)
"""


def run(*argv: str | Path, **env: str) -> str:
    """Run a command from the root; its output, or the end of this program with it."""
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=ROOT,
        env={**os.environ, **env},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, argv))}\n{done.stdout[-6000:]}{done.stderr[-3000:]}")
    return done.stdout


def installed(python: Path) -> dict[str, str]:
    """Distributions of an environment, as name -> version."""
    lines = run("uv", "pip", "list", "--format=freeze", "--python", python).split()
    return dict(line.split("==", 1) for line in lines if "==" in line)


def check(package: str, wheels: Path, home: Path) -> None:
    """Install one wheel into an empty environment, look at what came, import all of it, and run its tests."""
    module = package.replace("-", "_")
    venv = home / package
    python = venv / "bin" / "python"
    run("uv", "venv", "-q", "--python", sys.executable, venv)
    install = ("uv", "pip", "install", "-q", "--python", python, "--find-links", wheels)
    run(*install, package)
    found = installed(python)
    hermes = {name for name in found if name.startswith("hermes-")}
    if hermes != {package} | LAYERS[package]:
        sys.exit(f"{package} brings {sorted(hermes)}, not itself and {sorted(LAYERS[package])}")
    if package == "hermes-parsers" and len(found) != 1:
        sys.exit(f"hermes-parsers must install exactly one distribution, not {sorted(found)}")
    run(
        python,
        "-W",
        "error::DeprecationWarning:hermes",
        "-c",
        IMPORT_ALL,
        module,
        ",".join(OPTIONAL),
        PYTHONSAFEPATH="1",
    )
    run(*install, package + EXTRAS.get(package, ""), *TESTERS, *TEST_LIBRARIES.get(package, []))
    # The source folder of the package is not on the path: the tests meet the wheel that a user gets.
    tests = [f"packages/{package}/tests", *IGNORED.get(package, [])]
    out = run(ROOT / ".ci/tests", python, "-m", "pytest", "-q", "-m", HEAVY, *tests, HERMES_REQUIRE="")
    if "FLAKY" in out:
        print(out)
    print(f"{package}: {len(found)} distributions; {out.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    """Check the packages named on the command line, or all, in order of their layers."""
    wanted = sys.argv[1:] or list(LAYERS)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        wheels = home / "dist"
        for package in LAYERS:
            run("uv", "build", "-q", "--package", package, "--out-dir", wheels)
        for package in wanted:
            check(package, wheels, home)


if __name__ == "__main__":
    main()
