"""Commands in this process, and what they say."""

import click
from click.testing import CliRunner, Result

from prade.cli.main import every_command


def call(*arguments: object, code: int = 0) -> Result:
    """Run `prade` with these arguments; it must end with this exit code."""
    done = CliRunner().invoke(every_command(), [str(each) for each in arguments])
    assert done.exit_code == code, done.output
    return done


def commands(group: click.Group | None = None, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """The commands that do something, by the words of their names."""
    found: dict[tuple[str, ...], click.Command] = {}
    for name, command in (group or every_command()).commands.items():
        words = (*above, name)
        found |= commands(command, words) if isinstance(command, click.Group) else {words: command}
    return found
