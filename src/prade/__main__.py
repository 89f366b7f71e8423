"""`python -m prade`: the command line, where Ctrl-C is heard in the same way while it is still being loaded."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point."""
    try:
        from prade.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("prade: interrupted; nothing was begun\n")
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
