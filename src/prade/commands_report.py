"""The command that shows a release to people: report."""

from __future__ import annotations

import click

from prade.cli import examples, prade, remark


@prade.command()
@click.argument("release_folder", metavar="RELEASE", type=click.Path())
@click.option(
    "--truth",
    metavar="FILES",
    type=click.Path(),
    help="The true rows, to say how good the release is: a parquet or CSV file or a quoted glob; no database address.",
)
@click.option("--geojson", metavar="FILE", type=click.Path(), help="Outlines of the groups, for a map.")
@click.option("--geojson-key", metavar="NAME", help="The property that tells the group; two joined by + (STATE+PUMA).")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    help="File to write; RELEASE/report.html, or with --truth RELEASE-not-private.html beside the release.",
)
@examples("  prade report release --geojson places.geojson -o report.html")
def report(
    release_folder: str, truth: str | None, geojson: str | None, geojson_key: str | None, output: str | None
) -> None:
    """Explain a RELEASE on one HTML page.

    What was promised, what was asked, where the public table was wrong, how sure the results are. The page works
    offline. Spends nothing. With --truth the page is made of true rows: it is not private, must not be published, and
    is not written into a release.
    """
    from prade.progress import progress_bar
    from prade.report import write_report

    if geojson_key is not None and geojson is None:
        raise click.UsageError("--geojson-key names a property of the outlines: give these with --geojson")
    with progress_bar() as progress:
        path = write_report(
            release_folder, output, truth=truth, geojson=geojson, geojson_key=geojson_key, progress=progress
        )
    if truth is not None:
        remark("This page is made of true rows and is not differentially private: do not publish it.")
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
