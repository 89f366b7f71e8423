"""Commands in this process, and what they say."""

import click
from click.testing import CliRunner

from prade.cli.main import every_command


def call(*arguments, code=0):
    """Run `prade` with these arguments; it must end with this exit code."""
    done = CliRunner().invoke(every_command(), [str(each) for each in arguments])
    assert done.exit_code == code, done.output
    return done


def commands(group=None, above=()):
    """The commands that do something, by the words of their names."""
    found = {}
    for name, command in (group or every_command()).commands.items():
        words = (*above, name)
        found |= commands(command, words) if isinstance(command, click.Group) else {words: command}
    return found
