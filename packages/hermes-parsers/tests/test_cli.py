"""The command, run as people run it."""

import json
import signal
import subprocess
import sys


def run(*args, text=""):
    done = subprocess.run(
        [sys.executable, "-m", "hermes_parsers.cli", *args],
        input=text.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


CALL = 'Hi <tool_call>{"name": "f", "arguments": {"city": "Bodø"}}</tool_call>'


def test_list():
    code, out, _ = run("list")
    assert code == 0 and any(
        line.startswith("llama3_json") and "llama4_json" in line for line in out.splitlines()
    )
    rows = json.loads(run("list", "--json")[1])
    assert {"name": "hermes", "aliases": [], "special_tokens": ["<tool_call>", "</tool_call>"]} in rows


def test_parse(tmp_path):
    code, out, _ = run("parse", "hermes", text=CALL)
    result = json.loads(out)
    assert code == 0 and result["content"] == "Hi " and result["tool_calls"][0]["name"] == "f"
    code, out, _ = run("parse", "hermes", text='<tool_call>{"name": "f", "arguments": {')
    assert code == 1 and json.loads(out)["errors"][0]["kind"] == "truncated"
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}]))
    text = tmp_path / "text.txt"
    text.write_text("<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>")
    code, out, _ = run("parse", "Qwen/Qwen3-Coder-30B", str(text), "--model", "--tools", str(tools))
    assert json.loads(json.loads(out)["tool_calls"][0]["arguments"]) == {"n": 1}


def test_stream():
    code, out, _ = run("stream", "hermes", "--chunk", "4", text=CALL)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and lines[0] == {"content": "Hi "}
    assert "".join(line["tool_call"].get("arguments", "") for line in lines[1:]) == '{"city": "Bodø"}'
    out = run("stream", "hermes", "--openai", text=CALL)[1]
    assert json.loads(out.splitlines()[-1])["choices"][0]["finish_reason"] == "tool_calls"


def test_which():
    assert run("which", "zai-org/GLM-4.6")[:2] == (0, "glm45\n")
    code, _, err = run("which", "nobody/nothing")
    assert code == 1 and "no format is known" in err


def test_mistakes_are_explained():
    code, _, err = run("parse", "hermse", text="x")
    assert code == 2 and "did you mean 'hermes'" in err
    assert run("parse", "hermes", "/no/such/file")[0] == 2
    assert run("stream", "hermes", "--chunk", "0")[0] == 2
    assert run()[0] == 2


def test_a_reader_that_has_gone_and_an_interrupt_end_it_quietly():
    command = [sys.executable, "-m", "hermes_parsers.cli"]
    gone = subprocess.Popen([*command, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    gone.stdout.close()
    assert (gone.wait(60), gone.stderr.read()) == (141, b"")
    gone.stderr.close()
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*command, "stream", "hermes"], **pipes) as waiting:
        waiting.stdin.write(b"word " * 1000)
        waiting.stdin.flush()
        assert waiting.stdout.readline()
        waiting.send_signal(signal.SIGINT)
        assert (waiting.wait(60), waiting.stderr.read()) == (130, b"")
