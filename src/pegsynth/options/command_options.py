"""Options of commands beside a release: drafting a codebook, evaluating tables, keeping a book."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pegsynth.errors import ParameterError
from pegsynth.options import BookOptions, Publication, RowOptions, SourceOptions
from pegsynth.options._kinds import again, check_whole, option


@dataclass(frozen=True)
class DraftOptions:
    """What `pegs schema` makes a codebook of, or writes one as, and how a draft is made."""

    codebook: Path | None = option(
        None,
        "file",
        "A codebook to take it from instead of a table; no row is read.",
        flag="--from",
    )
    feature: str | None = option(None, "text", "The feature of a --from list of codes and labels.")
    export: str | None = option(
        None, "text", "Write SCHEMA as frictionless, ddi, csvw or sdv instead.", flag="--to"
    )
    min_count: int | None = option(
        None,
        "whole",
        "Values with fewer rows are not listed: texts and codes become (other), numbers are "
        "measured. 10 unless stated; 1 lists every value.",
    )
    bins: int | None = option(None, "whole", "Bins of numeric columns; 20 if they are listed.")
    binning: str = option(
        "private",
        "text",
        "private: a release measures edges; equal-width or quantile: read off the data.",
    )
    private: bool = option(
        False,
        "flag",
        "Read no row: a release finds categories and measures edges, and pays for them.",
    )
    types: str | None = option(
        None,
        "text",
        "With --private: types of columns that declare none, as age=int64,pay=double.",
    )
    unit: str | None = option(None, "text", "Column that names whom a row belongs to.")
    force: bool = option(False, "flag", "Replace a schema that somebody has reviewed.")

    def __post_init__(self) -> None:
        from pegsynth.schema.binning import MAX_BINS, MOST_PRIVATE_BINS

        if self.min_count is not None:
            check_whole("min_count", self.min_count)
        least, most = (2, MOST_PRIVATE_BINS) if self.binning == "private" else (1, MAX_BINS)
        if self.bins is not None and not least <= self.bins <= most:
            raise ParameterError(
                f"--bins must be from {least} to {most:,} with --binning {self.binning}; it was "
                f"{self.bins}"
            )
        if self.binning not in ("private", "equal-width", "quantile"):
            raise ParameterError(
                f"--binning is private, equal-width or quantile, not {self.binning!r}"
            )
        looking = self.min_count is not None or self.bins is not None or self.binning != "private"
        if self.private and looking:
            raise ParameterError(
                "--private reads no row; leave out --min-count, --bins and --binning"
            )
        if self.types is not None and not self.private:
            raise ParameterError("--types requires --private; a draft from rows sees the types")

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
class EvaluateOptions:
    """What `pegs evaluate` measures, and what it writes; figures go in a folder beside a report."""

    report: Path | None = option(
        None, "file", "HTML page to write; figures go in a folder beside it."
    )
    json: Path | None = option(None, "file", "metrics.json to write, every figure in it.")
    holdout: str | None = again(Publication, "holdout")
    target: str | None = again(Publication, "target")
    known: list[str] | None = option(
        None,
        "texts",
        "Features that an intruder knows [default: quasi-identifiers]; one list, or one for each "
        "--infer.",
        metavar="F,F",
    )
    infer: list[str] | None = option(
        None, "texts", "Feature that is inferred [default: sensitive ones].", metavar="F"
    )
    formulas: list[str] | None = again(Publication, "formulas")
    per_record: bool = option(
        False, "flag", "Also a line for every row, beside the JSON; internal."
    )
    ledger: Path | None = option(None, "file", "The privacy.json of the release, for the page.")

    @property
    def per_record_file(self) -> Path | None:
        """Where figures for every row go."""
        if not self.per_record or self.json is None:
            return None
        return self.json.with_name(f"{self.json.stem}-per-record-INTERNAL.parquet")

    @property
    def figures(self) -> Path | None:
        """Where the figures of the page go."""
        return None if self.report is None else self.report.with_name(f"{self.report.stem}-figures")

    @property
    def outputs(self) -> list[Path]:
        """Every file that is written under a name of its own."""
        return [path for path in (self.json, self.report, self.per_record_file) if path is not None]


@dataclass(frozen=True)
class LimitOptions:
    """The limits of a budget book that is made, what another tool spent, and how one is shown."""

    epsilon: float | None = option(
        None, "number", "Limit for everything together; with add, what another tool spent."
    )
    epsilon_per_year: float | None = option(None, "number", "Limit for every calendar year (UTC).")
    delta: float | None = option(
        None, "number", "Delta of the limits, or of --epsilon [default: none, pure runs only]."
    )
    unit: str | None = option(
        None, "text", "Unit column that every run protects [default: single rows]."
    )
    private_categories: bool = option(
        False, "flag", "Set a tenth of delta aside for categories that are found."
    )
    spender: list[str] | None = option(
        None, "texts", "Account that may spend [default: anybody].", metavar="NAME"
    )
    table: str | None = option(None, "text", "What the table is called, for readers.")
    json: bool = option(False, "flag", "Print the book as JSON.")
    rho: float | None = option(None, "number", "With add: what another tool spent, as rho.")
    by: str | None = option(
        None, "text", "With add: which tool spent it, such as 'OpenDP query of 3 May'."
    )


@dataclass(frozen=True)
class CombineOptions:
    """By which rule estimates are combined, and what is known of their tables."""

    rule: str | None = option(
        None,
        "text",
        "plug-in, fully (the paper's), partial, shared-urn, own-noise, or nested for completed "
        "tables [default: by the ledger, else plug-in].",
    )
    rows: int | None = option(None, "whole", "Rows of each synthetic table.")
    rows_in: int | None = again(RowOptions, "rows_in")
    ledger: Path | None = option(None, "file", "The privacy.json of the release.")
    level: float = option(0.95, "number", "Level of the intervals.")
    analysis: str | None = option(
        None,
        "text",
        "What was estimated, such as 'los ~ age + sev': says whether published tables hold it, "
        "by the ledger.",
        metavar="TEXT",
    )


@dataclass(frozen=True)
class VerifyOptions:
    """Which release is verified by which analysis, and what the answer may cost."""

    release: Path = option(..., "file", "Folder of the release that is verified.")
    formula: str = option(
        ..., "text", "Regression, such as 'charge ~ age + C(sev)'.", metavar="TEXT"
    )
    epsilon: float | None = option(
        None, "number", "What this question may cost, beside the release."
    )
    delta: float | None = option(None, "number", "Gaussian noise, which is less for many terms.")
    schema: Path | None = option(
        None, "file", "Schema of the original [default: that of the release]."
    )
    terms: list[str] | None = option(
        None,
        "texts",
        "Coefficient to ask for [default: all but Intercept].",
        flag="--term",
        metavar="NAME",
    )
    parts: int | None = option(
        None, "whole", "Parts of the original [default: 10 to 50, by its rows]."
    )
    tolerance: float = option(0.0, "number", "How much further off a part may be and still agree.")
    rows_in: int | None = again(RowOptions, "rows_in")
    ledger: Path | None = option(
        None, "file", "Ledger to charge [default: RELEASE.verification.json]."
    )
    seed: int | None = option(None, "whole", "Reproducible, without guarantee; for tests.")
    book: Path | None = again(BookOptions, "book")
    table: str | None = again(SourceOptions, "table")
    query: str | None = again(SourceOptions, "query")
    query_is_rowwise: bool = again(SourceOptions, "query_is_rowwise")
