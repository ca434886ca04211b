"""Fork a `tb2` for each request on the socket whose number is the argument; the other end closing ends this."""

import json
import os
import resource
import signal
import socket
import sys
from importlib import import_module

IMPORTED = (
    *("hermes_benchmarks.cli.running", "hermes_benchmarks.cli.resume", "hermes_benchmarks.cli.evaluate"),
    *("hermes_benchmarks.terminal_bench.benchmark", "hermes_benchmarks.agents.hermes"),
    *("hermes_benchmarks.agents.scripted", "hermes_envs.harbor.verifier", "hermes_envs.loop"),
    *("hermes_sandbox.backends.docker", "hermes_sandbox.backends.local"),
)


def serve(requests):
    """Take requests until their end; returns in each child that is to run `tb2`, with True."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not asked:
            return False
        if os.fork() == 0:
            requests.close()
            return attend(json.loads(asked), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def attend(asked, answers, out, err):
    """Report the process id of a child and its end; returns True in the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child:
        os.close(out)
        os.close(err)
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.setsid()
    os.write(answers, b"%d" % os.getpid())  # from here on its whole group can be killed
    os.close(answers)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    if asked["file_size"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["file_size"], asked["file_size"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["tb2", *asked["arguments"]]
    return True


for module in IMPORTED:
    import_module(module)
if serve(socket.socket(fileno=int(sys.argv[1]))):
    import_module("hermes_benchmarks.cli.tb2").main()
