"""A process that has imported torchspore's front end and forks once for each program that it is sent.

It reads one JSON object a line, {"arguments", "cwd"}, and answers {"code", "out", "err"}. Importing torch takes seconds, a fork
milliseconds; no torch operator has run in the parent, so that its children are as good as fresh processes.
"""
from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from typing import Any

import torchspore

torchspore.install()
import mindspore  # noqa: E402, F401
import torch._dynamo  # noqa: E402, F401  # torch imports this where the first graph is captured: seconds in each child


def in_child(request: dict[str, Any], out: int, err: int) -> int:
    """Runs the command in this (child) process and gives its exit code."""
    from torchspore.cli.main import main

    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(request["cwd"])
    # As `python -m torchspore` would find it: the front end not yet imported under MindSpore's name, its own argv and path.
    sys.argv = ["torchspore", *request["arguments"]]
    try:
        return main(request["arguments"])
    except BaseException:
        traceback.print_exc()
        return 70


def serve() -> None:
    """Answers requests until its input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                code = in_child(request, out.fileno(), err.fileno())
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            answer = {"code": os.waitstatus_to_exitcode(status), "out": out.read().decode(), "err": err.read().decode()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
