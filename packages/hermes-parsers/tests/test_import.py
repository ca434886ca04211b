"""Importing the package is cheap: no third-party module, no format before it is asked for."""

import subprocess
import sys

PROGRAM = """
import sys
before = set(sys.modules)
import hermes_parsers
new = {name.partition('.')[0] for name in set(sys.modules) - before}
foreign = new - set(sys.stdlib_module_names) - {'hermes_parsers'}
print(sorted(foreign))
print(sorted(name for name in sys.modules if name.startswith('hermes_parsers.formats.')))
hermes_parsers.get_parser('glm45').parse('<tool_call>f</tool_call>')
print(sorted(name for name in sys.modules if name.startswith('hermes_parsers.formats.')))
print('importlib.metadata' in sys.modules, 'asyncio' in sys.modules)
"""


def test_import_brings_nothing_else():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    foreign, formats, after, heavy = out.stdout.splitlines()
    assert foreign == "[]" and formats == "[]"
    assert after == "['hermes_parsers.formats.tagged']"
    assert heavy.endswith("False")
