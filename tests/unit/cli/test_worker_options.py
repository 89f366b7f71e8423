"""`--workers` and `--cluster`: where the work of a command is done."""

from concurrent.futures import ProcessPoolExecutor

import pytest

from prade.cli.main import every_command
from prade.cli.options import working
from prade.core.execution import cores
from worlds.commands import call

COMMANDS = ("plan", "estimate", "sample", "report", "synthesize")


def test_what_the_options_mean():
    with working() as execution:
        assert (execution.threads, execution.executor) == (cores(), None)
    with working(1) as execution:
        assert (execution.threads, execution.executor) == (1, None)
    with working(2) as execution:
        assert isinstance(execution.executor, ProcessPoolExecutor)
        assert execution.executor.submit(abs, -3).result() == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_works_on_groups_has_them_with_examples(command):
    said = " ".join(call(command, "--help").output.split())
    assert "as in --workers 8." in said
    assert "tcp://10.0.0.1:8786" in said
    for alone in ("measure", "score"):  # these read private rows
        assert "--cluster" not in [option for each in every_command().commands[alone].params for option in each.opts]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--workers", 0], "0 is not in the range x>=1"),
        (["--workers", "many"], "'many' is not a valid integer"),
        (["--workers", 2, "--cluster", "tcp://a:1"], "--cluster uses others: give one"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words, tmp_path):
    said = " ".join(call("estimate", tmp_path, *given, code=2).stderr.replace("│", " ").split())
    assert words in said
    assert list(tmp_path.iterdir()) == []
