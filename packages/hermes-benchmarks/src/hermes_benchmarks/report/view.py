"""A small server for one run, on this machine only; what it shows is read anew at each request."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from hermes_benchmarks.errors import BenchmarkError
from hermes_benchmarks.files import to_json
from hermes_benchmarks.report.data import read_run
from hermes_benchmarks.report.html import GENEROUS, render, render_summary, row, trial_detail

HOSTS = frozenset({"127.0.0.1", "localhost"})


def make_server(run: Path, port: int) -> ThreadingHTTPServer:
    """A server for a run's report, bound to 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page elsewhere must not read results through a name that resolves to this machine.
            if (self.headers.get("Host") or "").rpartition(":")[0] not in HOSTS:
                self.send_error(HTTPStatus.FORBIDDEN, "ask for 127.0.0.1")
                return
            try:
                answer = respond(run, self.path)
            except BenchmarkError as error:
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, str(error)[:200])
                return
            if answer is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            kind, body = answer
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not worth a line."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def respond(run: Path, target: str) -> tuple[str, bytes] | None:
    """Content type and body for a request, None where there is nothing."""
    url = urlsplit(target)
    if url.path == "/":
        page = render(read_run(run), details={}, live=True)
        return "text/html; charset=utf-8", page.encode("utf-8", "replace")
    if url.path == "/state.json":
        data = read_run(run)
        state = {"rows": [row(record) for record in data.records], "summary": render_summary(data)}
        return "application/json", to_json(state, indent=None)
    if url.path == "/trial.json":
        wanted = parse_qs(url.query).get("name", [""])[0]
        data = read_run(run)
        for record in data.records:
            if record.name == wanted:
                return "application/json", to_json(trial_detail(data, record, GENEROUS), indent=None)
    return None
