"""The command `prade` for the pages of the documentation, without loading large libraries anew each time.

One process loads them once. For each command it forks, and the child does all that `prade` does from its first line on,
with the caller's arguments, folder, environment, input and output: it loads prade itself, as a new process would.
The library that draws noise is not loaded in advance, so that no two children can have the state of one generator.
"""

import atexit
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARIES = (
    *("duckdb", "jinja2", "numba", "pandas", "pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet"),
    *("rich.table", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn.ensemble"),
)
BROKEN = 70  # the exit code of a command whose process died
CALL = """#!{python} -IS
import json, os, socket, sys

given = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as link:
    link.connect({address!r})
    socket.send_fds(link, [b"f"], [0, 1, 2])
    link.sendall(json.dumps(given).encode())
    link.shutdown(socket.SHUT_WR)
    sys.exit(next(iter(link.recv(1)), {broken}))
"""


@contextlib.contextmanager
def quick_commands():
    """A folder with a program `prade`, to be put at the head of PATH."""
    with tempfile.TemporaryDirectory(prefix="prade-quick-") as name:
        folder = Path(name)
        address = folder / "socket"
        program = folder / "bin" / "prade"
        program.parent.mkdir()
        program.write_text(CALL.format(python=sys.executable, address=str(address), broken=BROKEN))
        program.chmod(0o755)
        with subprocess.Popen([sys.executable, "-u", __file__, address], stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout.readline(), "the process that runs the commands of pages did not start"
                yield program.parent
            finally:
                server.kill()


def serve(address):
    """Load the libraries, then answer each call by a child."""
    for name in LIBRARIES:
        importlib.import_module(name)
    sys.modules["numba"].njit(lambda: 0)()  # any function: the first one that a process calls takes long
    if loaded := {"prade", "opendp"} & set(sys.modules):
        raise RuntimeError(f"loaded in advance: {loaded}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children need not be waited for
        while True:
            link, _ = listener.accept()
            with link:
                if os.fork() == 0:
                    listener.close()
                    _answer(link)


def _answer(link):
    """Run one command in this process, and end it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, places, _, _ = socket.recv_fds(link, 1, 3)
    given = json.loads(b"".join(iter(lambda: link.recv(1 << 16), b"")))
    for number, place in enumerate(places):
        os.dup2(place, number)
        os.close(place)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.argv = ["prade", *given["arguments"]]
    code = 0
    try:
        from prade.__main__ import main

        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    number = code if isinstance(code, int) else int(code is not None)
    link.sendall(bytes([number & 255]))
    os._exit(number)


if __name__ == "__main__":
    serve(sys.argv[1])
