"""Speed and memory of the parsers, as ratios measured in one run.

    python perf/parsers.py [--json FILE] [FORMAT …]

Times are the best of a few tries in CPU seconds. The base is `json.loads` of the same arguments. `memory` is the most that
a stream of 20 calls holds besides the arguments of the complete ones, as a multiple of one call's text.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
import typing
from functools import partial
from pathlib import Path

SUPPORT = Path(__file__).parent.parent / "packages" / "hermes-parsers" / "tests" / "support"
TOOL = {"name": "w", "parameters": {"type": "object", "properties": {"t": {"type": "string"}}}}
TOOLS = [{"type": "function", "function": TOOL}]
MEGABYTE = 1_000_000


def best(run, tries=3):
    """The least CPU time of a few runs, in milliseconds."""
    least = float("inf")
    for _ in range(tries):
        begin = time.process_time()
        run()
        least = min(least, time.process_time() - begin)
    return least * 1000


def source_code(size):
    text = Path(typing.__file__).read_text(encoding="utf-8")
    return (text * (size // len(text) + 1))[:size]


def stream(parser, text, size=4):
    reading = parser.stream()
    for at in range(0, len(text), size):
        reading.feed(text[at : at + size])
    reading.finish()
    return reading.result()


def held_by(parser, text, step=64):
    """The most that a stream holds besides the arguments of its complete calls, in bytes."""
    reading, most = parser.stream(), 0
    tracemalloc.start()
    for at in range(0, len(text), step):
        reading.feed(text[at : at + step])
        if at % (16 * step) == 0:
            kept = sum(len(call.arguments) for call in reading.result().tool_calls)
            most = max(most, tracemalloc.get_traced_memory()[1] - kept)
            tracemalloc.reset_peak()
    tracemalloc.stop()
    return most


def measure(name, render, get_parser):
    parser = get_parser(name, TOOLS)
    plain, code = "abcdefghij" * (MEGABYTE // 10), source_code(MEGABYTE)
    row = {"format": name}
    for kind, value in (("plain", plain), ("code", code)):
        wire, arguments = render([("w", {"t": value})]), json.dumps({"t": value}, ensure_ascii=False)
        found = parser.parse(wire).tool_calls
        row[f"{kind}_exact"] = len(found) == 1 and found[0].args == {"t": value}
        base = best(lambda arguments=arguments: json.loads(arguments))
        row[f"{kind}_x"] = best(lambda wire=wire: parser.parse(wire)) / base
    calls = render([("w", {"t": "x"})] * 200)
    row["calls_200"] = len(parser.parse(calls).tool_calls)
    row["calls_200_ms"] = best(lambda: parser.parse(calls), 5)
    small = render([("w", {"t": code[:16_384]})])
    row["stream_16k_ms"] = best(lambda: stream(parser, small))
    half, whole = render([("w", {"t": code[: MEGABYTE // 2]})]), render([("w", {"t": code})])
    row["doubling_x"] = min(
        best(lambda: stream(parser, whole), 1) / best(lambda: stream(parser, half), 1) for _ in "12"
    )
    one = ("w", {"t": code[:20_000]})
    row["memory_x"] = held_by(parser, render([one] * 20)) / len(render([one]))
    return row


def floods(render, openers):
    """Damaged texts of one format, by what is wrong with them."""
    text, without = render([("w", {"t": "VALUE"})]), render([("w", {})])
    value = text.index("VALUE")
    key = next(at for at in range(value) if text[at] != without[at])
    key -= text[key - 1] == "<"
    return {
        "2,000 blanks, at any place": [text[:at] + " " * 2000 for at in range(len(text))],
        "20 truncated calls": [text[:value] * 20],
        "20 arguments, cut off": [render([("w", {f"a{i}": i for i in range(20)})])[:-8]],
        "8,000 opener tokens": [opener * 8000 for opener in openers],
        "2,000 unclosed parameters": [text[:key] + (text[key:value] + "x\n") * 2000],
    }


def worst_floods(names, renderers, get_parser, load):
    """For each flood the longest time that any format takes, and that format."""
    worst = {}
    for name in names:
        read = get_parser(name, TOOLS).parse
        for what, texts in floods(renderers[name], load(name).openers).items():
            took = max((best(partial(read, text)) for text in texts), default=0.0)
            worst[what] = max(worst.get(what, (0.0, "")), (took, name))
    return {what: {"ms": took, "format": name} for what, (took, name) in worst.items()}


def import_ms():
    """The time of the import and of its base; the modules are compiled, as they are once installed."""

    def run(program):
        code = f"import time; b = time.perf_counter(); {program}; print(time.perf_counter() - b)"
        command = [sys.executable, "-c", code]
        outputs = [subprocess.run(command, capture_output=True, check=True, env=env) for _ in range(9)]
        return min(float(done.stdout) for done in outputs) * 1000

    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        base = run("import json, re, dataclasses")
        return run("import json, re, dataclasses; import hermes_parsers"), base


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("formats", nargs="*")
    options.add_argument("--json", type=Path)
    args = options.parse_args()
    sys.path.insert(0, str(SUPPORT))
    from hermes_parsers import catalog, get_parser
    from parsers_renderers import RENDERERS

    rows = [measure(name, RENDERERS[name], get_parser) for name in args.formats or sorted(RENDERERS)]
    print(
        f"{'format':<16} {'plain':>6} {'code':>6} {'200 calls':>10} {'16k by 4':>9} {'double':>7} {'memory':>7}"
    )
    for row in rows:
        exact = "" if row["plain_exact"] and row["code_exact"] and row["calls_200"] == 200 else "  NOT EXACT"
        print(
            f"{row['format']:<16} {row['plain_x']:>5.1f}x {row['code_x']:>5.1f}x {row['calls_200_ms']:>7.2f} ms "
            f"{row['stream_16k_ms']:>6.1f} ms {row['doubling_x']:>6.2f}x {row['memory_x']:>6.1f}x{exact}"
        )
    slow = worst_floods([row["format"] for row in rows], RENDERERS, get_parser, catalog.load)
    for what, flood in slow.items():
        print(f"{what:<32} {flood['ms']:>7.2f} ms  {flood['format']}")
    total, base = import_ms()
    print(f"import hermes_parsers: {total - base:.1f} ms over {base:.1f} ms for json, re and dataclasses")
    if args.json:
        report = {
            "formats": rows,
            "floods_ms": slow,
            "import_ms": total - base,
        }
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
