"""Starts `transept` commands by forks of one process, because importing torch takes two seconds.

    python -m tests.docs.starter SOCKET

It ends with its standard input. A command arrives as JSON with its three standard streams, and its
exit code is the answer. `CLIENT` sends one.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as starter:
    starter.connect(sys.argv[1])
    command = {"words": sys.argv[2:], "directory": os.getcwd(), "environment": dict(os.environ)}
    sent = json.dumps(command).encode()
    socket.send_fds(starter, [len(sent).to_bytes(4, "big")], [0, 1, 2])
    starter.sendall(sent)
    answer = starter.recv(1)
sys.exit(answer[0] if answer else 70)
"""
STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}


def serve(path: Path) -> None:
    """Fork for each command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are not waited for
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))
        server.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            client, _ = server.accept()
            with client:
                if os.fork() == 0:
                    server.close()
                    _run(client)


def _run(client: socket.socket) -> NoReturn:
    """Run a command in this process, and send its exit code."""
    code: Any = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        length, streams, _, _ = socket.recv_fds(client, 4, len(STREAMS))
        with client.makefile("rb") as rest:
            command = json.loads(rest.read(int.from_bytes(length, "big")))
        for number, (stream, (name, mode)) in enumerate(zip(streams, STREAMS.items(), strict=True)):
            os.dup2(stream, number)
            os.close(stream)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        os.chdir(command["directory"])
        os.environ.clear()
        os.environ.update(command["environment"])
        sys.argv = ["transept", *command["words"]]
        runpy.run_module("transept", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        client.sendall(bytes([code if isinstance(code, int) else int(code is not None)]))
        os._exit(0)


if __name__ == "__main__":
    from transept.cli import app

    app.keep_freed_memory()
    app.limit_spinning()
    import torch._dynamo  # noqa: F401  (which optimizers import when they are made)

    import transept.api.models
    import transept.assembly  # noqa: F401

    gc.freeze()
    serve(Path(sys.argv[1]))
    os._exit(0)  # libraries report objects that are left at exit
