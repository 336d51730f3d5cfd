"""`schema`: draft a codebook, or do something with one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pegsynth.cli.console import say
from pegsynth.cli.working import check_not_inputs
from pegsynth.errors import OutputError, ParameterError
from pegsynth.options._kinds import check_whole
from pegsynth.schema import Schema
from pegsynth.schema.binning import MAX_BINS, MOST_PRIVATE_BINS
from pegsynth.schema.codebooks import read_codebook, write_codebook
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.draft import Binning, table_dialect
from pegsynth.schema.tally import FEW_PEOPLE
from pegsynth.schema.toml import save
from pegsynth.schema.toml_text import confidential
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.tables.table_input import named_source, open_table

if TYPE_CHECKING:
    from pegsynth.pipeline.request import Request


@dataclass(frozen=True)
class DraftWishes:
    """How a draft is made."""

    min_count: int | None = None
    bins: int | None = None
    binning: Any = "private"
    unit: str | None = None
    force: bool = False
    private: bool = False
    types: str | None = None

    def __post_init__(self) -> None:
        if self.min_count is not None:
            check_whole("min_count", self.min_count)
        least, most = (2, MOST_PRIVATE_BINS) if self.binning == "private" else (1, MAX_BINS)
        if self.bins is not None and not least <= self.bins <= most:
            raise ParameterError(
                f"--bins must be from {least} to {most:,} with --binning {self.binning}; it was "
                f"{self.bins}"
            )
        if self.binning not in get_args(Binning):
            raise ParameterError(
                f"--binning is private, equal-width or quantile, not {self.binning!r}"
            )
        looking = self.min_count is not None or self.bins is not None or self.binning != "private"
        if self.private and looking:
            raise ParameterError(
                "--private reads no row; leave out --min-count, --bins and --binning"
            )
        if self.types is not None and not self.private:
            raise ParameterError("--types goes with --private; a draft from rows sees the types")

    @property
    def declared(self) -> dict[str, str]:
        """Types that were stated, by column."""
        found = {}
        for item in filter(None, (self.types or "").split(",")):
            name, mark, dtype = item.rpartition("=")
            if not mark or not name.strip() or not dtype.strip():
                raise ParameterError("--types must be as age=int64,pay=double")
            found[name.strip()] = dtype.strip()
        return found


@dataclass(frozen=True)
class SchemaRequest:
    """What was asked of the command.

    Parameters
    ----------
    words
        A table; or an action and a schema file.
    codebook, feature
        A codebook to take the schema from, and the feature that a list of codes is about.
    export
        The form to write a schema in.
    """

    words: Sequence[str]
    output: Path | None
    codebook: Path | None
    feature: str | None
    export: str | None
    wishes: DraftWishes


def run(asked: SchemaRequest, request: Request) -> None:
    """Find out what was asked for, and do it."""
    from pegsynth.cli import schema_review, schema_showing

    actions: dict[str, Callable[[Path], None]] = {
        "check": schema_showing.check,
        "show": schema_showing.show,
        "review": schema_review.review,
    }
    first = asked.words[0] if asked.words else ""
    if first == "count" and asked.codebook is None and asked.export is None:
        _count(asked, request)
        return
    if first in actions and asked.codebook is None and asked.export is None:
        if len(asked.words) != 2:
            raise ParameterError(
                f"pegs schema {first} takes one schema file; a table called {first} is ./{first}"
            )
        actions[first](Path(asked.words[1]))
        return
    wanted = 0 if asked.codebook is not None else 1
    if len(asked.words) != wanted:
        raise ParameterError(
            "pegs schema takes one table, or one schema file with --to, or --from CODEBOOK and no "
            "table, or check, show or review and a schema file, or count, a schema file and a table"
        )
    if asked.output is None:
        raise ParameterError("pegs schema needs -o FILE for what it writes")
    if asked.codebook is not None:
        take(asked.codebook, asked.output, asked.feature, force=asked.wishes.force)
        return
    source = asked.words[0]
    if asked.export is not None:
        give(Path(source), asked.output, asked.export)
        return
    draft(_source(source, request), asked.output, asked.wishes, request.dialect)


def _count(asked: SchemaRequest, request: Request) -> None:
    """Count rows by a codebook, for a person who may see the table."""
    from pegsynth.cli import schema_showing

    if len(asked.words) != 3:
        raise ParameterError(
            "pegs schema count takes a schema file and its table; a table called count is ./count"
        )
    file, source = Path(asked.words[1]), _source(asked.words[2], request)
    if asked.output is not None:
        check_target(asked.output)
        check_not_inputs((asked.output,), source, file)
    schema_showing.count(file, source, asked.output)


def _source(data: str, request: Request) -> Any:
    return named_source(data, table=request.table, query=request.query)


def draft(data: Any, output: Path, wishes: DraftWishes, stated: Dialect) -> None:
    """Draft a schema and say what to do with it; a reviewed one is replaced with `force` only."""
    check_replaceable(output, force=wishes.force)
    check_not_inputs((output,), data)
    if wishes.private:
        _draft_unseen(data, output, wishes, stated)
        return
    dialect = table_dialect(data, stated)
    with open_table(data, dialect=dialect) as reader:
        schema = Schema.draft(
            reader,
            min_count=wishes.min_count,
            bins=wishes.bins,
            binning=wishes.binning,
            unit=wishes.unit,
        )
    schema.save(output)
    if schema.dialect:
        found = "as stated" if stated.over(dialect) == stated else "recognised, not certain"
        say(f"Read as text of this form ({found}; see [table] of the schema): {dialect.said()}.")
    for line in _fates(schema):
        say(line)
    dropped = [column.name for column in schema.columns if column.dropped]
    least = wishes.min_count or FEW_PEOPLE
    say(
        f"{output}: {len(schema.features)} features drafted; a value that fewer than {least} rows "
        f"have is not listed. {_identifiers(dropped)}The file is CONFIDENTIAL until a person "
        "has checked that it holds public knowledge only and set reviewed = true."
    )


def _draft_unseen(data: Any, output: Path, wishes: DraftWishes, stated: Dialect) -> None:
    """Draft a schema from names and declared types, and say what is still to be reviewed."""
    with open_table(data, dialect=stated) as reader:
        schema = Schema.draft(reader, unit=wishes.unit, private=True, types=wishes.declared)
    save(schema, output, notes=True)
    for line in _fates(schema):
        say(line)
    say(
        f"{output}: {len(schema.features)} features drafted; no row was read. Categories and edges "
        "need no review: a release finds and measures them, and pays with --epsilon and --delta. "
        "Check roles, unit and rules, and set reviewed = true."
    )


def _fates(schema: Schema, most: int = 200) -> Iterator[str]:
    """Yield a line for every column: what became of it."""
    width = min(40, max(len(column.name) for column in schema.columns))
    for column in schema.columns[:most]:
        if column.name == schema.unit:
            what = "the unit; dropped"
        elif column.dropped:
            what = "dropped as an identifier"
        elif column.private_categories:
            what = "nominal, categories found by the release"
        elif column.private_edges:
            what = f"{column.kind}, edges measured by the release"
        elif column.binned:
            what = f"{column.kind}, {column.bin_count} bins"
        else:
            what = f"{column.kind}, {column.bin_count} categories"
        more = "; see the comments" if column.notes and not column.dropped else ""
        yield f"  {column.name[:40].ljust(width)}  {what}{more}"
    if len(schema.columns) > most:
        yield f"  and {len(schema.columns) - most} more columns"


def take(codebook: Path, output: Path, feature: str | None, *, force: bool) -> None:
    """Make a schema of a codebook; a list of codes goes into the schema that is there."""
    check_replaceable(output, force=force)
    check_not_inputs((output,), "", codebook)
    schema = read_codebook(codebook, feature=feature)
    if feature is not None and output.is_file():
        (told,) = schema.features
        there = Schema.load(output)
        schema = there.with_feature(
            feature,
            categories=told.categories,
            value_labels=told.value_labels,
            drafted_from_data=False,
        )
    save(schema, output, notes=True)
    left = [column.name for column in schema.columns if column.dropped]
    say(
        f"{output}: {len(schema.features)} features from {codebook}; no row was read. "
        f"{_identifiers(left)}Check it, and set reviewed = true (pegs schema review {output})."
    )


def give(schema_file: Path, output: Path, form: str) -> None:
    """Write a schema as a codebook of another program."""
    check_target(output)
    check_not_inputs((output,), "", schema_file)
    schema = Schema.load(schema_file)
    if confidential(schema):
        raise ParameterError(
            f"{schema_file}: it was drafted from data and nobody reviewed it; a codebook is for "
            "others to read"
        )
    atomic_text(output, write_codebook(schema, form))
    say(f"{output}: {len(schema.features)} features as {form}.")


def check_replaceable(output: Path, *, force: bool) -> None:
    """Refuse to write where that cannot be done, or where somebody has reviewed a schema."""
    check_target(output)
    if not force and _reviewed(output):
        raise OutputError(
            f"{output}: this schema is reviewed, and a draft would replace it; choose another "
            "name, or replace it with --force"
        )


def _reviewed(file: Path) -> bool:
    """Whether a file says that a person has reviewed it, be it valid otherwise or not."""
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig")).get("reviewed") is True
    except (OSError, ValueError, RecursionError):
        return False


def _identifiers(names: Sequence[str], most: int = 10) -> str:
    """Say which columns a draft drops, if any."""
    if not names:
        return ""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"Dropped as identifiers: {', '.join(map(repr, names[:most]))}{more}. "
