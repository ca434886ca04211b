"""A chat completions server on this machine that knows the scripts of the sample tasks."""

import contextlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hermes_benchmarks.datasets import sample_path


def scripts():
    """Each sample task's instruction with the turns that do it."""
    return {
        (folder / "instruction.md").read_text().strip(): json.loads(
            (folder / "solution/turns.json").read_text()
        )
        for folder in sample_path().iterdir()
        if (folder / "solution/turns.json").exists()
    }


def answer(request, known):
    """The next turn of the script for the conversation in a request."""
    messages = request["messages"]
    asked = next(message["content"] for message in messages if message["role"] == "user")
    turns = known[asked.strip()]
    said = sum(message["role"] == "assistant" for message in messages)
    turn = turns[min(said, len(turns) - 1)]
    calls = [
        {
            "id": f"call_{said}_{n}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for n, call in enumerate(turn.get("calls", ()))
    ]
    message = {"role": "assistant", "content": turn.get("say"), **({"tool_calls": calls} if calls else {})}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "total_tokens": 1050,
            "prompt_tokens_details": {"cached_tokens": 600},
        },
    }


class Model:
    """What the server does: `key` is the only one it takes, `fail` gives a status for the n-th request or None."""

    def __init__(self, key="k-e-y", fail=lambda n: None):
        self.key, self.fail = key, fail
        self.requests, self.lock, self.known = [], threading.Lock(), scripts()
        self.url = ""


@contextmanager
def serve(model):
    """Run the server; `model.url` is its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self):
            with contextlib.suppress(ConnectionError):  # who asked is free to go
                super().handle()

        def reply(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def refused(self):
            if self.headers.get("Authorization") == f"Bearer {model.key}":
                return False
            self.reply(401, {"error": {"message": "invalid api key", "type": "auth"}})
            return True

        def do_GET(self):
            if not self.refused():
                self.reply(200, {"object": "list", "data": []})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.refused():
                return
            with model.lock:
                model.requests.append(body)
                status = model.fail(len(model.requests))
            if status:
                self.reply(status, {"error": {"message": f"status {status}", "type": "test"}})
            else:
                self.reply(200, answer(body, model.known))

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
