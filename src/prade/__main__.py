"""`python -m prade`: the command line. Ctrl-C works the same way while the program is still loading."""

from __future__ import annotations

import sys


def main() -> None:
    """Load and run the command line."""
    try:
        from prade.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("prade: interrupted; nothing was started\n")
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
