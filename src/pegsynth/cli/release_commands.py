"""The commands that write a release folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.cli.console import progress_bar, say
from pegsynth.cli.notes import (
    say_booking,
    say_constant,
    say_guarantee,
    say_method,
    say_release_replaced,
)
from pegsynth.cli.working import check_not_inputs
from pegsynth.errors import OutputError, SchemaError, book_notes
from pegsynth.options._kinds import check_whole
from pegsynth.pipeline.request import Request
from pegsynth.privacy import Ledger
from pegsynth.publishing.folder import check_folder
from pegsynth.publishing.publication import Judging, Publication
from pegsynth.schema import Schema

if TYPE_CHECKING:
    from pegsynth.publishing.fill_folder import Made

_STAYS = 200_000
_REVIEWER = "pegs demo"


def release(
    data: Any,
    schema: Path | Schema,
    output: Path,
    request: Request,
    publication: Publication,
    *,
    force: bool,
    quiet: bool = False,
) -> Made:
    """Write a release folder and say where to look; quiet: let the caller say it."""
    from pegsynth.publishing.bought_quality import NotAcceptedError
    from pegsynth.publishing.fill_folder import make_folder

    check_not_inputs((), data, resume=request.resume)
    try:
        with progress_bar() as progress:
            made = make_folder(
                data, schema, output, request, publication, force=force, progress=progress
            )
    except NotAcceptedError as refused:
        say("\n".join((str(refused), *book_notes(refused))))
        sys.exit(1)
    say_method(made.notes)
    say_constant(made.schema)
    if quiet:
        return made
    say_guarantee(made.ledger)
    say_booking(made.booking, made.ledger)
    if made.replaced:
        say_release_replaced(output)
    print(_may_leave(output, made.schema, made.ledger, internal=not publication.public_only))
    return made


def _may_leave(output: Path, schema: Schema, ledger: Ledger, *, internal: bool) -> str:
    """Say what may be published; without a guarantee that is for a person to decide."""
    if schema.reviewed and ledger.guarantee.kind != "none":
        kept = f"; {output}/internal may not" if internal else ""
        return f"{output}/public may be published{kept}."
    kept = f" {output}/internal may not." if internal else ""
    return (
        f"{output}/public carries no guarantee; somebody has to decide whether it may be "
        f"published.{kept}"
    )


def demo(output: Path, rows: int) -> None:
    """Draft, review and release built-in data; say what was promised and how close it came."""
    from pegsynth.datasets import discharge, reviewed_discharge_draft
    from pegsynth.evaluation import Metrics

    check_whole("rows", rows)
    _check_demo(output)
    say(f"Invented hospital discharges: {_STAYS:,} stays, 13 features, no real person among them.")
    stays = discharge(_STAYS)
    schema = reviewed_discharge_draft(Schema.draft(stays), _REVIEWER)
    request = Request(rows=rows, method="auto", epsilon=1.0, delta=1e-9, rows_in=_STAYS)
    publication = Publication(judging=Judging(holdout=discharge(rows)))
    made = release(stays, schema, output, request, publication, force=True, quiet=True)
    metrics = Metrics.from_json((output / "internal" / "metrics.json").read_bytes())
    say_guarantee(made.ledger)
    if (pairs := metrics.record("tvd2")) is not None and pairs.value is not None:
        say(
            f"How close: for a table of two features to match the original, {pairs.value:.1%} of "
            f"its rows would have to change on average (as many real rows: {pairs.baseline:.1%})."
        )
    say(
        f"Open {output}/internal/report.html in a browser: original and synthetic side by side. "
        f"{output}/public may be published."
    )


def _check_demo(output: Path) -> None:
    """Refuse a folder that is anything but an earlier demo, which may be replaced unasked."""
    check_folder(output, force=True)
    if output.exists() and any(output.iterdir()) and not _is_of_demo(output):
        raise OutputError(
            f"cannot write {str(output)!r}: the folder exists and is no earlier demo; choose "
            "another with -o"
        )


def _is_of_demo(release_folder: Path) -> bool:
    try:
        return Schema.load(release_folder / "public" / "schema.toml").reviewer == _REVIEWER
    except (OSError, SchemaError):
        return False
