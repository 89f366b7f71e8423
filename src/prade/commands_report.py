"""The command that shows a release to people: report."""

from __future__ import annotations

import click

from prade.cli import examples, need_folder, prade, remark


@prade.command()
@click.argument("release_folder", metavar="RELEASE")
@click.option("--truth", metavar="PRIVATE", help="File of the true rows: the page then says how good the release is.")
@click.option("--geojson", metavar="FILE", help="Outlines of the groups, for a map.")
@click.option("--geojson-key", metavar="NAME", help="The property that tells the group; two joined by + (STATE+PUMA).")
@click.option("-o", "--output", help="File to write; RELEASE/report.html (with --truth report-not-private.html).")
@examples("  prade report release --geojson places.geojson -o report.html")
def report(
    release_folder: str, truth: str | None, geojson: str | None, geojson_key: str | None, output: str | None
) -> None:
    """Explain a RELEASE on one HTML page.

    What was promised, what was asked, where the public table was wrong, how sure the results are. The page works
    offline. Spends nothing. With --truth the page is made of true rows: it is not private and must not be published.
    """
    from prade.progress import progress_bar
    from prade.report import write_report

    if geojson_key is not None and geojson is None:
        raise click.UsageError("--geojson-key names a property of the outlines: give these with --geojson")
    if output is not None:
        need_folder(output)
    with progress_bar() as progress:
        path = write_report(
            release_folder, output, truth=truth, geojson=geojson, geojson_key=geojson_key, progress=progress
        )
    if truth is not None:
        remark("This page is made of true rows and is not differentially private: do not publish it.")
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
