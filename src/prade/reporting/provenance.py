"""Where a release comes from: versions, public files, plan, seed, the ledger's entry, and how to cite it."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prade.core.errors import many
from prade.release.file_names import LABELS
from prade.release.release import claim_of, read_manifest
from prade.reporting.headline import made_on, short

if TYPE_CHECKING:
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan
    from prade.release.release import Release

LIBRARIES = ("prade", "numpy", "scipy", "numba", "pyarrow")


def provenance_of(estimates: Estimates, seed: int | None, rows: int) -> dict[str, Any]:
    """Everything that is needed to make the release's estimates and rows again, and to cite them."""
    release = estimates.release
    return {
        "versions": {
            "measured": dict(read_manifest(release.path).get("versions", {})),
            "page": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        },
        "public": public_files(release.plan),
        "publicRows": len(estimates.public.observed),
        "plan": release.plan.hash,
        "labels": None if release.labels is None else {"file": LABELS, "hash": release.labels},
        "seed": seed,
        "ledger": _ledger(release),
        "cite": cite(release, rows),
    }


def public_files(plan: Plan) -> list[dict[str, str | None]]:
    """The public files by name, without their folders, with the hashes that the plan recorded."""
    if plan.public is None:
        return []
    hashes = plan.public.sha256 or (None,) * len(plan.public.files)
    return [{"file": Path(file).name, "hash": digest} for file, digest in zip(plan.public.files, hashes, strict=True)]


def _ledger(release: Release) -> dict[str, Any]:
    """The entry that paid for the release, and the ledger that has it; version 0.1 named no ledger."""
    claim = claim_of(read_manifest(release.path))
    origin = claim.origin
    return {
        "entry": origin.entry,
        "ledger": origin.ledger,
        "hash": origin.hash,
        "measurements": claim.measurements_hash,
    }


def cite(release: Release, rows: int) -> dict[str, str]:
    """How to cite the synthetic rows: a sentence, and an entry for BibTeX."""
    plan, made = release.plan, made_on(release)
    title = f"{plan.dataset}: synthetic rows with differential privacy"
    note = f"{many(rows, 'row')}, {short(plan.budget)}, plan {plan.hash[:16]}, made with prade {version('prade')}"
    key = re.sub(r"[^a-z0-9]+", "-", plan.dataset.casefold()).strip("-") or "release"
    fields = {"title": title, "year": made[:4], "note": note}
    lines = [f"  {name} = {{{_escaped(value)}}}" for name, value in fields.items()]
    body = ",\n".join(lines)
    return {"sentence": f"{title} ({made}). {note}.", "bibtex": f"@misc{{{key}-{made[:4]},\n{body}\n}}"}


def _escaped(text: str) -> str:
    """A text that BibTeX takes literally."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", "/"))
