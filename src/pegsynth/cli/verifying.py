"""``pegs verify``: a paid answer about the original, printed with what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegsynth.cli.console import say
from pegsynth.cli.notes import say_booking, say_guarantee
from pegsynth.cli.working import check_not_inputs
from pegsynth.errors import escaped
from pegsynth.publishing.verify_release import Question, answer
from pegsynth.tables.table_input import named_source


def run(
    data: str,
    release: Path,
    *,
    ledger_file: Path | None,
    table: str | None,
    query: str | None,
    query_is_rowwise: bool,
    **options: Any,
) -> None:
    """Ask, charge and print."""
    folder = release.parent if release.name == "public" else release
    file = ledger_file or folder.with_name(f"{folder.resolve().name}.verification.json")
    schema = options.get("schema")
    source = named_source(data, table=table, query=query, rowwise=query_is_rowwise)
    inputs = [each for each in (schema, options.get("book")) if each]
    check_not_inputs((file,), source, *inputs)
    found, booking = answer(Question(data=source, release=release, ledger=file, **options))
    for line in str(found).splitlines():
        print(escaped(line))
    say(f"Charged to {file}, which holds all questions so far; the release comes on top.")
    say_guarantee(found.ledger)
    say_booking(booking, found.ledger)
