"""A page to read trajectories in a browser. Everything a model or a tool wrote is escaped."""

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .output_file import metadata_in

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.3rem} details{border:1px solid #d0d7de;border-radius:6px;margin:.6rem 0;padding:.4rem .8rem}
summary{cursor:pointer;font-weight:600} .message{margin:.7rem 0;border-left:3px solid #d0d7de;padding-left:.7rem}
.role{font-size:.8rem;font-weight:600;color:#57606a;text-transform:uppercase;letter-spacing:.04em}
.assistant{border-color:#0969da}.tool{border-color:#8250df}.system{border-color:#9a6700}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0;font:13px/1.45 ui-monospace,monospace}
.call{background:#f6f8fa;border-radius:6px;padding:.3rem .6rem;margin:.3rem 0} .thinking{color:#57606a;font-style:italic}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}.call{background:#161b22}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_html(lines: Iterable[Mapping[str, Any]], path: Path, title: str) -> None:
    """Write the page for lines of any of our one-rollout formats."""
    with path.open("w", encoding="utf-8") as page:
        page.write(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f"<title>{_safe(title)}</title><style>{_STYLE}</style></head><body><h1>{_safe(title)}</h1>\n"
        )
        page.writelines(_rollout(line) for line in lines)
        page.write("</body></html>\n")


def _rollout(line: Mapping[str, Any]) -> str:
    metadata = metadata_in(line)
    extra: Mapping[str, Any] = line.get("extra") or {}
    reward = line.get("reward", extra.get("reward"))
    facts: list[Any] = [
        line.get("id"),
        f"reward {reward}",
        metadata.get("stop_reason"),
        metadata.get("model"),
    ]
    head = " · ".join(str(fact) for fact in facts if fact)
    return f"<details><summary>{_safe(head)}</summary>{''.join(_messages(line))}</details>\n"


def _messages(line: Mapping[str, Any]) -> Iterator[str]:
    for message in line.get("conversation") or line.get("messages") or ():
        yield _message(message)
    for spoken in line.get("conversations") or ():
        yield _message({"role": spoken["from"], "content": spoken["value"]})
    for step in line.get("steps") or ():
        yield _message(
            {"role": step.get("source", ""), "content": json.dumps(step, ensure_ascii=False, indent=1)}
        )


def _message(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", ""))
    kind = role if role in ("assistant", "tool", "system", "user") else "user"
    parts = [f'<div class="message {kind}"><div class="role">{_safe(role)}</div>']
    if message.get("reasoning_content"):
        parts.append(f'<pre class="thinking">{_safe(message["reasoning_content"])}</pre>')
    if message.get("content"):
        parts.append(f"<pre>{_safe(message['content'])}</pre>")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(
            f'<div class="call"><b>{_safe(function["name"])}</b><pre>{_safe(function["arguments"])}</pre></div>'
        )
    return "".join([*parts, "</div>"])


def _safe(value: Any) -> str:
    return html.escape(str(value), quote=True)
