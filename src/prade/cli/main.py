"""The command line, `prade`. Each command reads files, writes files, and can be run again.

Results go to standard output, as one JSON value with `--json`. Remarks and progress bars go to standard error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from prade.core.errors import BudgetError, DataError, PradeError, Remark
from prade.core.files import need_folder
from prade.core.interrupts import INTERRUPTED, interrupted, second_ends
from prade.core.version import __version__

WRONG, TOO_MUCH = 1, 3  # exit codes; click's own is 2
INTERRUPTION = "interrupted; no file is half-written, run the command again to continue"
DEBUG = "PRADE_DEBUG"
JSON = "prade.cli.json"  # in the context of a command: whether it was given --json
UNFORESEEN = f"This is a bug in prade; please report it. To see where it occurred, put {DEBUG}=1 before the command"
# the other commands read private rows
PUBLIC_ONLY = ("schema", "plan", "estimate", "sample", "answer", "diagnose", "ledger")
SPENDING = ("measure", "synthesize")
COMMANDS = [
    *("schema", "check", "plan", "ledger", "measure", "estimate", "sample", "synthesize", "answer", "diagnose"),
    *("score", "report", "demo"),
]
# The shell completes it as a file or folder. Click does not check it: the code that opens the file has better error
# messages, and the argument may also be a database address or a pattern of files.
FILE = click.Path(readable=False)

Command = TypeVar("Command", bound=Callable[..., Any])


class Stages(click.Group):
    """A group of commands that turns errors into a short message and a documented exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", Remark)
                warnings.showwarning = _remark_or_warn(warnings.showwarning)
                return super().invoke(ctx)
        except (click.exceptions.Exit, BrokenPipeError):  # a pipe breaks when the reader closes it, as `head` does
            raise
        except (KeyboardInterrupt, Exception) as error:
            if isinstance(error, click.ClickException):
                error.show()
            message, code = _explained(ctx, error)
            if words := ". ".join(filter(None, [message, _spent(ctx, error)])):
                remark(words)
            ctx.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order of their use; click would sort them by name."""
        return list(self.commands)


def _explained(ctx: click.Context, error: BaseException) -> tuple[str, int]:
    """Return the message of an error or interruption, and the exit code."""
    if isinstance(error, click.ClickException):
        return "", error.exit_code
    if isinstance(error, KeyboardInterrupt) and error.args and isinstance(error.args[0], PradeError):
        return f"prade: {error.args[0].worded('shell')}", INTERRUPTED
    if isinstance(error, (KeyboardInterrupt, click.Abort)) or interrupted():
        return f"prade: {INTERRUPTION}", INTERRUPTED  # a library may have turned it into an error of its own
    if isinstance(error, PradeError):
        return f"prade: {error.worded('shell')}", TOO_MUCH if isinstance(error, BudgetError) else WRONG
    if isinstance(error, OSError):
        return f"prade: {error.filename or 'a file'}: {error.strerror}; choose a file that you can access", WRONG
    if os.environ.get(DEBUG):  # the trace only: the error's message may quote a private row
        remark("".join(traceback.format_tb(error.__traceback__)))
    words = f": {error}" if ctx.invoked_subcommand in PUBLIC_ONLY and str(error) else ""
    return f"prade: {type(error).__name__}{words}. {UNFORESEEN}", WRONG


def _spent(ctx: click.Context, error: BaseException) -> str:
    """Return the sentence on what a run spent, with which every failure of a command that spends ends."""
    if ctx.invoked_subcommand not in SPENDING:
        return ""
    from prade.release.terms import NOTHING, spending_of

    return spending_of(error) or NOTHING  # without a note, the command line was wrong and nothing was run


def _remark_or_warn(warn: Callable[..., None]) -> Callable[..., None]:
    """How a command shows warnings: prade's own as remarks, and the others as Python does."""

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, Remark):
            remark(str(message))
        else:
            warn(message, category, *where)

    return show


def _note_json(context: click.Context, _: click.Parameter, given: bool) -> None:
    context.meta[JSON] = given


as_json = click.option("--json", is_flag=True, expose_value=False, callback=_note_json, help="Print results as JSON.")


def examples(text: str, *, with_json: bool = True) -> Callable[[Command], Command]:
    """Add the option --json to a command that has a result, and an example to its help, with its line breaks kept."""

    def add(command: Command) -> Command:
        command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n\b\nExample:\n{text}"
        return as_json(command) if with_json else command

    return add


@click.group("prade", cls=Stages, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="prade")
@examples(
    "  prade synthesize private.parquet --schema schema.toml --public public.parquet --groups places.csv \\\n"
    "      --levels STATE,PUMA --epsilon 1 -o release",
    with_json=False,
)
def program() -> None:
    """Make synthetic tables of people with differential privacy, starting from public data.

    The stages are plan, measure, estimate, sample and report; `synthesize` runs all five. Only `measure` and
    `synthesize` spend budget. `score` and `report --truth` also read true rows, so their results are not private.

    Exit codes: 0 success; 1 an input is wrong; 2 the command line is wrong; 3 the budget does not allow it, and nothing
    was spent; 130 interrupted, and no file is half-written.

    To let your shell complete commands and options, run eval "$(_PRADE_COMPLETE=bash_source prade)"; for other shells
    write zsh_source or fish_source.
    """


def remark(text: str) -> None:
    """Print a remark to standard error, where it does not disturb a script that reads the results."""
    click.echo(text, err=True)


def wants_json() -> bool:
    """Whether the command that runs was given --json: its standard output is then one JSON value."""
    return bool(click.get_current_context().meta.get(JSON))


def result(value: Any, words: str) -> None:
    """Print a result: as JSON for a script, or in words for a person."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str) if wants_json() else words)


def every_command() -> click.Group:
    """Return the command line with all of its commands, which their modules register when they are imported."""
    for module in ("plan_commands", "ledger_commands", "release_commands", "report_commands", "demo"):
        importlib.import_module(f"prade.cli.{module}")
    program.commands = {name: program.commands[name] for name in COMMANDS}
    return program


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line. A second Ctrl-C ends the process at once."""
    with second_ends():
        try:
            code = every_command().main(args=arguments, prog_name="prade", standalone_mode=False)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (KeyboardInterrupt, click.Abort):
            remark(f"prade: {INTERRUPTION}")
            code = INTERRUPTED
        if code == INTERRUPTED:  # without waiting for threads, whose results are no longer needed
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            os._exit(code)
    sys.exit(code)


def need_file(path: str | os.PathLike[str]) -> None:
    """Check as `need_folder` does, and that `path` is not itself a folder."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder; give the name of a file to write")
    need_folder(path)


def need_new_file(path: str | os.PathLike[str], force: bool, option: str = "-o") -> None:
    """Check as `need_file` does, and that nothing is lost: a file that exists is replaced with --force only."""
    need_file(path)
    if Path(path).exists() and not force:
        raise DataError(f"{path} exists already; give another name with {option}, or add --force to replace it")


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as a table: a header line, numbers aligned to the right, the same number of decimals in each column.

    >>> print(text_table([{"STATE": 17, "count": 9.5, "share": 0.25}, {"STATE": 39, "count": 1200, "share": 1.0}]))
    STATE    count   share
       17      9.5  0.2500
       39  1,200.0  1.0000
    """
    if not rows:
        return "no rows"
    padded = []
    for name in rows[0]:
        values = [row[name] for row in rows]
        numbers = [value for value in values if isinstance(value, (int, float))]
        texts = [name, *_texts(values, numbers)]
        numeric, width = len(numbers) + values.count(None) == len(values), max(map(len, texts))
        padded.append([text.rjust(width) if numeric else text.ljust(width) for text in texts])
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _texts(values: Sequence[Any], numbers: Sequence[float]) -> list[str]:
    """Format a column's cells: four decimals if all of its numbers are below ten, otherwise one."""
    style = ".4f" if all(abs(number) < 10 for number in numbers) else ",.1f"
    decimal = any(isinstance(value, float) for value in numbers)
    return [
        "" if value is None else format(value, style) if decimal and isinstance(value, (int, float)) else str(value)
        for value in values
    ]
