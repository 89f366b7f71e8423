"""Commands in this process, and what they say."""

from click.testing import CliRunner, Result

from prade.cli.main import every_command


def call(*arguments: object, code: int = 0) -> Result:
    """Run `prade` with these arguments; it must end with this exit code."""
    done = CliRunner().invoke(every_command(), [str(each) for each in arguments])
    assert done.exit_code == code, done.output
    return done
