"""The files a script runs with inside the workspace.

The script and this process speak over the script's own standard streams, so that all that is needed is a process, which
every workspace has: no network, no socket, no polling of folders. A call goes out between marks on standard output, in one
write of less than a pipe takes at once, so that nothing else can come between; the answer comes in as one line
of standard input. What is too large for that goes into a file, which is then named instead.
"""

import json
from collections.abc import Iterable

from hermes_tools.tool import Tool

INLINE_CALL = 3_000
INLINE_REPLY = 32_000
# Written for any Python 3 that a sandbox may have.
_BRIDGE = '''\
"""The tools of this session as functions. Each returns the tool's result, a dictionary."""
import json, os, sys, threading

_folder = os.path.dirname(os.path.abspath(__file__))
_answers = open(os.dup(0), "r", encoding="utf-8", newline="\\n")
_mark_fd = os.dup(1)
_lock = threading.Lock()
_waiting = {}
_replies = {}
_count = 0

_null = os.open(os.devnull, os.O_RDONLY)
os.dup2(_null, 0)


def _listen():
    for line in _answers:
        number, _, reply = line.partition(" ")
        event = _waiting.pop(int(number), None)
        if event is not None:
            _replies[int(number)] = reply
            event.set()


threading.Thread(target=_listen, daemon=True).start()


def _call(name, parameters, args, kwargs):
    global _count
    if len(args) > len(parameters):
        raise TypeError("%s takes at most %d arguments" % (name, len(parameters)))
    for parameter, value in zip(parameters, args):
        if parameter in kwargs:
            raise TypeError("%s got two values for %r" % (name, parameter))
        kwargs[parameter] = value
    event = threading.Event()
    with _lock:
        _count += 1
        number = _count
        _waiting[number] = event
    request = json.dumps([number, name, kwargs])
    if len(request) > @INLINE@:
        path = os.path.join(_folder, "call-%d.json" % number)
        with open(path, "w") as file:
            file.write(request)
        request = json.dumps([number, "", {}])
    sys.stdout.flush()
    os.write(_mark_fd, ("\\x1e@MARK@ " + request + "\\x1e").encode())
    event.wait()
    reply = _replies.pop(number)
    if not reply.strip():
        with open(os.path.join(_folder, "reply-%d.json" % number), "rb") as file:
            reply = file.read().decode("utf-8")
    return json.loads(reply)
'''
_FUNCTION = (
    "\n\ndef {name}(*args, **kwargs):\n    {doc}\n    return _call({name!r}, {parameters!r}, args, kwargs)\n"
)
_MAIN = """\
import os, sys
sys.path[0] = os.path.dirname(os.path.abspath(__file__))
import hermes_tools
sys.path.insert(1, os.getcwd())
_path = os.path.join(sys.path[0], "script.py")
sys.argv = [_path]
with open(_path, "rb") as _file:
    _code = compile(_file.read(), _path, "exec")
exec(_code, {"__name__": "__main__", "__file__": _path, "__builtins__": __builtins__})
"""


def script_files(code: str, tools: Iterable[Tool], mark: str) -> dict[str, bytes]:
    """The files to put into a folder of the workspace, by name; `main.py` is the one to run.

    Args:
        code: The script.
        tools: The tools it may call.
        mark: A word that the script's own output does not contain.
    """
    bridge = _BRIDGE.replace("@MARK@", mark).replace("@INLINE@", str(INLINE_CALL))
    for tool in tools:
        name = tool.name.replace("-", "_")
        parameters = list(tool.parameters["properties"])
        doc = json.dumps(tool.description)
        function = _FUNCTION.format(name=name, doc=doc, parameters=parameters)
        bridge += function.replace(f"_call({name!r}", f"_call({tool.name!r}")
    files = {"hermes_tools.py": bridge, "main.py": _MAIN, "script.py": code}
    return {name: text.encode("utf-8") for name, text in files.items()}
