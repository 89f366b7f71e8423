"""Readers of texts: queries, numbers, and the options of the command line."""

import os

import msgspec
import numpy as np

from fuzz import mutators
from fuzz.world import BORN, SCHEMA, Reader, World
from prade import Budget, Schema, Unit
from prade.cli.main import UNFORESEEN, every_command
from prade.core.numbers import exact
from prade.queries.query import parse, possible


class UnforeseenEnd(Exception):
    """The command line ended with words that it keeps for what should not happen."""


def words(text):
    """The words of a text."""
    return text.split()


WORDS = words(
    """AGE SEX WORK STATE BORN `AGE` missing and or not in is ( ) [ ] , == != < <= > >= 65 18 1 2 -1 1e999 'part'
    "none" '2020-12-31' None True = <> & | between BETWEEN AND Or NOT null IN part
    lambda AGE.x f(1) 1j b'x' \'\'\' # ` \\ ~"""
)
WORDS += ["AGE >= 65", "SEX == 2", "9" * 400, "0x" + "f" * 400]
QUERIES = [
    "AGE >= 65 and SEX == 2",
    "not ( WORK in [ 'part' , 'full' ] or AGE is missing )",
    "18 <= AGE < 65",
    "`SEX` != 1",
    "AGE between 18 and 64 AND SEX = 2 | WORK IN ( 'part' )",
    "NOT ( AGE not between 18 and 64 & SEX <> 1 )",
]
DIGITS = [*"0123456789.-+eE/_ ½٣", *words("nan inf 1/3 1e-9 0x e9999999"), "9" * 5000]
OPTIONS = words(
    """--epsilon --delta --rho --levels --groups --schema --public --weight --max-rows-per-person --person-id
    --dataset --no-tune --json -o --by --of --queries --pairs --seed --skip --bins --max-values --spreadsheet-safe
    --labels
    schema.toml
    public.parquet places.csv release STATE PLACE STATE,PLACE AGE WEIGHT 1 0 -1 1/3 1e999 nan all ² out.toml out.csv
    none.csv . x"""
)
OPTIONS += ["", "9" * 30, "AGE >= 65", "median(AGE)", "quantile(AGE, 2)", "histogram(SEX) where"]
COMMANDS = [
    ["schema", "infer", "public.parquet", "-o", "out.toml"],
    ["check", "public.parquet", "--schema", "schema.toml"],
    ["plan", "--schema", "schema.toml", "--public", "public.parquet", "--epsilon", "1", "--no-tune", "-o", "out.toml"],
    ["answer", "release", "AGE >= 65"],
    ["answer", "release", "mean(AGE) where SEX == 2"],
    ["sample", "release", "--public", "public.parquet", "-o", "out.csv"],
    ["score", "public.parquet", "public.parquet", "--schema", "schema.toml", "--by", "STATE", "--pairs", "2"],
]


def query(world):
    schema = Schema([BORN, *SCHEMA.columns])
    codes = {name: np.zeros(3, np.uint8) for name in schema.names}

    def read(text):
        found = parse(text, schema)
        assert parse(found.text, schema) == found
        return found.mask(codes), possible(found.expression)

    return Reader("query", lambda rng: mutators.text_of(WORDS, rng, seeds=QUERIES), read)


def numbers(world):
    def mutate(rng):
        if rng.random() < 0.5:
            return mutators.text_of(DIGITS, rng, 6)
        trees = [Budget.approx(1, "1e-9").to_dict(), Budget.pure("1/3").to_dict(), Unit(7, person_id="ID").to_dict()]
        return mutators.tree(rng.choice(trees), rng)

    def read(given):
        if isinstance(given, str):
            budget = Budget.pure(exact(given, "epsilon"))
            return str(budget), budget.to_dict(), repr(budget)
        if isinstance(given, dict) and "max_rows" in given:
            return Unit.from_dict(given).promise()
        return str(Budget.from_dict(given))

    return Reader("numbers", mutate, read)


def command_line(world):
    """Options in any order with any values; an end in words for what was not foreseen is a finding."""
    from click.testing import CliRunner

    commands, runner = every_command(), CliRunner()
    home = World(world.folder / "commands").folder  # of its own, for what the others leave is broken
    sound = {name: (home / name).read_bytes() for name in ("schema.toml", "public.parquet", "places.csv")}

    def mutate(rng):
        given = list(rng.choice(COMMANDS))
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            at = rng.randint(1, len(given))
            given[at : at + rng.choice([0, 1, 1])] = [rng.choice(OPTIONS)]
        return given

    def read(given):
        os.chdir(home)
        for name, data in sound.items():  # an input may have named one for the output
            (home / name).write_bytes(data)
        done = runner.invoke(commands, given)
        if UNFORESEEN in done.output or not isinstance(done.exception, SystemExit | None):
            raise UnforeseenEnd(f"{done.exception!r} {done.output[-300:]}") from done.exception
        if done.exit_code:
            raise msgspec.ValidationError(done.output[:80])  # counted as refused
        return

    return Reader("command line", mutate, read)
