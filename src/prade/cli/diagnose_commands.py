"""The command that says where the public table is wrong: `diagnose`."""

from __future__ import annotations

from pathlib import Path

import click

from prade.cli.main import FILE, examples, need_file, prade, remark, result, text_table
from prade.cli.options import named_files, public_again
from prade.cli.plan_commands import as_json
from prade.cli.release_commands import release_folder


@prade.command()
@release_folder
@click.option("--by-group", is_flag=True, help="List every group and column, instead of every column of a level.")
@click.option(
    "--sharp", is_flag=True, help="Count any difference beyond noise, even one that random sampling explains."
)
@click.option(
    "--design-effect",
    type=float,
    default=1.0,
    show_default=True,
    help="How much more samples vary than independent rows would: about 2 where rows come in households.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulated noise.")
@click.option("-o", "--output", type=FILE, help="File to write the table to, .csv or .parquet.")
@public_again
@as_json
@examples("  prade diagnose release\n  prade diagnose release --by-group -o diagnosis.csv")
def diagnose(
    release_folder: str,
    by_group: bool,
    sharp: bool,
    design_effect: float,
    seed: int,
    output: str | None,
    public: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say where the public table of a RELEASE is wrong.

    The noisy answers are compared with what the public rows predict, for every measured column, group and level. wrong
    is the number of groups where noise and random sampling do not explain the difference: the chance that any of these
    alarms is false is at most 5 %. distance is the total-variation distance without the noise, at_least the largest
    lower bound of any group, sampling what random sampling alone would lead to, and noise_units the difference in units
    of the noise. This command spends nothing.
    """
    from prade.data.read.tables import table_suffix, write_table
    from prade.release.release import Release

    if output is not None:
        need_file(output)
        table_suffix(Path(output))  # fail before the work
    found = Release.load(release_folder).diagnosis(
        named_files(public), sharp=sharp, design_effect=design_effect, seed=seed
    )
    table = found.groups() if by_group else found.columns()
    if output is not None:
        write_table(table, output)
        result({"file": output, "rows": len(table)}, f"{output}: {len(table):,} rows", as_json)
        return
    if not as_json:
        for line in (*found.headlines(), *found.remarks()):
            remark(line)
    facts = {**found.to_dict(), **({"groups": table.to_pylist()} if by_group else {})}
    result(facts, text_table(table.to_pylist()), as_json)
