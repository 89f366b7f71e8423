"""The command line: `prade`. Each command is one stage, reads files, writes files, and can be run again.

Exit codes: 0 done; 1 something is wrong with what was given (the message says what to do); 2 the command line itself
is wrong; 3 the budget does not allow it, nothing was spent; 130 interrupted, nothing is half-written.

Results go to the standard output, with `--json` as one JSON value; remarks and progress bars go to standard error.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import click

from prade.core.errors import BudgetError, PradeError
from prade.core.interrupts import INTERRUPTED, interrupted, second_ends
from prade.core.version import __version__

WRONG, TOO_MUCH = 1, 3
INTERRUPTION = "interrupted; nothing is half-written, run the command again to go on"
DEBUG = "PRADE_DEBUG"
UNFORESEEN = f"This should not have happened; {DEBUG}=1 before the command shows where it did: please report it"
PUBLIC_ONLY = ("schema", "check", "plan", "estimate", "sample", "answer", "ledger")  # others see rows of private tables

Command = TypeVar("Command", bound=Callable[..., Any])


class Stages(click.Group):
    """A group that ends on prade's own errors with one screen of text and a documented exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as interrupt:
            cause = interrupt.args[0] if interrupt.args else INTERRUPTION
            _end(ctx, cause.told("shell") if isinstance(cause, PradeError) else str(cause), INTERRUPTED)
        except PradeError as error:
            if interrupted():  # a library has made an error of its own of it
                _end(ctx, f"interrupted: {error.told('shell')}", INTERRUPTED)
            _end(ctx, error.told("shell"), TOO_MUCH if isinstance(error, BudgetError) else WRONG)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read the output has seen enough
                raise
            _end(ctx, f"{error.filename or 'a file'}: {error.strerror}; get access to it, or use another place", WRONG)
        except Exception as error:
            if interrupted():
                _end(ctx, INTERRUPTION, INTERRUPTED)
            if os.environ.get(DEBUG):  # where it happened, without the error's words, which may quote a row
                remark("".join(traceback.format_tb(error.__traceback__)))
            words = f": {error}" if ctx.invoked_subcommand in PUBLIC_ONLY and str(error) else ""
            _end(ctx, f"{type(error).__name__}{words}. {UNFORESEEN}", WRONG)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are used, not of the alphabet."""
        return list(self.commands)


def _end(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo(f"prade: {message}", err=True)
    ctx.exit(code)


def examples(text: str) -> Callable[[Command], Command]:
    """An example under a command's help, as it is written here."""

    def add(command: Command) -> Command:
        command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n\b\nExample:\n{text}"
        return command

    return add


@click.group(cls=Stages, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="prade")
@examples(
    "  prade synthesize private.parquet --schema schema.toml --public public.parquet --groups places.csv \\\n"
    "      --levels STATE,PUMA --epsilon 1 -o release"
)
def prade() -> None:
    """Synthetic microdata under differential privacy, from what is public already.

    plan -> measure -> estimate -> sample -> report; `synthesize` does all of them. Only `measure` and `synthesize`
    spend budget. `score` and `report --truth` read true rows too, and what they say is not private.

    Exit codes: 0 done; 1 something is wrong with what was given; 2 the command line is wrong; 3 the budget does not
    allow it, nothing was spent; 130 interrupted, nothing is half-written.

    Completion of commands and options by the shell: eval "$(_PRADE_COMPLETE=bash_source prade)", or zsh_source, or
    fish_source.
    """


def remark(text: str) -> None:
    """Something to know that is no result: it does not get in the way of a script."""
    click.echo(text, err=True)


def result(value: Any, words: str, as_json: bool) -> None:
    """The outcome, for a person or for a script."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str) if as_json else words)


def every_command() -> click.Group:
    """The command line with all its commands: each enters itself when its module is imported."""
    for module in ("planning_commands", "ledger_commands", "release_commands", "report_commands", "demo"):
        importlib.import_module(f"prade.cli.{module}")
    return prade


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point. A second Ctrl-C ends the process at once."""
    with second_ends():
        try:
            given = None if arguments is None else list(arguments)
            code = every_command().main(args=given, prog_name="prade", standalone_mode=False)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (KeyboardInterrupt, click.Abort):
            remark(f"prade: {INTERRUPTION}")
            code = INTERRUPTED
        if code == INTERRUPTED:
            _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End without waiting for threads: nobody wants any more what they are working on."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
