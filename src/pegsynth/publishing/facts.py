"""What a run did, read off its schema and its ledger: the facts that documents are written from.

Every sentence of a release that is not true of all releases asks one of these.

What the papers of a release are made of; of the table it holds what was paid for alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from pegsynth.errors import escaped
from pegsynth.inference.choice import weights_of
from pegsynth.options import How, weight_file
from pegsynth.privacy import Ledger, NoisyCounts, NoisySums
from pegsynth.privacy.assumptions import Parameters
from pegsynth.privacy.draw_events import DRAWS
from pegsynth.privacy.events import CategoriesFound, Diversity, PooledRows, UnitBound
from pegsynth.privacy.statement import rows_folded
from pegsynth.publishing.about import NOTHING, About, release_date
from pegsynth.publishing.policy import NO_POLICY, Policy
from pegsynth.publishing.rendering import page
from pegsynth.publishing.result import TableFormat
from pegsynth.schema import Feature, Schema
from pegsynth.schema.feature import number_text
from pegsynth.schema.temporal import bound_text


@dataclass(frozen=True)
class RunFacts:
    """What a run did.

    Parameters
    ----------
    schema
        The codebook that is published.
    ledger
        What was done, and what it costs.
    """

    schema: Schema
    ledger: Ledger

    def _parameters(self, code: str) -> list[Parameters]:
        return [each.parameters for each in self.ledger.assumptions if each.code == code]

    def assumed(self, code: str, key: str) -> tuple[str, ...]:
        """Return the features that a parameter of an assumption names."""
        stated = (each.get(key) for each in self._parameters(code))
        return self._named(n for names in stated if isinstance(names, list) for n in names)

    @property
    def options(self) -> Parameters:
        """The options of the run that the ledger states."""
        return next(iter(self._parameters("public-options")), {})

    def _named(self, stated: Iterable[str]) -> tuple[str, ...]:
        """Return the features that a ledger names; it escapes what steers a terminal.

        Of a panel it names those of the folded table: a feature stands for its first position.
        """
        names, panel = set(stated), self.schema.panel
        return tuple(
            name
            for name in self.schema.names
            if escaped(name if panel is None else panel.at(name, 1)) in names
        )

    @property
    def replaced(self) -> tuple[str, ...]:
        """Features that were drawn, where the others hold original values; else none."""
        return self.assumed("public-options", "synthesize")

    @property
    def kept(self) -> tuple[str, ...]:
        """Features that hold original values."""
        replaced = self.replaced
        return tuple(n for n in self.schema.names if n not in replaced) if replaced else ()

    @property
    def resampled(self) -> bool:
        """Whether rows have the categories of original rows, drawn with replacement."""
        method = self.options.get("method")
        if method == "contingency":
            return self.lacks_result("unperturbed") and not self.options.get("log_linear")
        return method == "bootstrap"

    def lacks_result(self, code: str) -> bool:
        """Whether something was done that no result covers, for a reason of that code."""
        return any(getattr(event, "code", "") == code for event in self.ledger.events)

    @property
    def given(self) -> tuple[str, ...]:
        """Features that have the same requested value in every row."""
        return self.assumed("given-values", "features")

    @property
    def virtual_rows(self) -> bool:
        """Whether rows were drawn under virtual rows, which pull them towards a prior."""
        return any(isinstance(event, (*DRAWS, Diversity)) for event in self.ledger.events)

    @property
    def unit(self) -> str:
        """The column that names the privacy unit; empty where a row is the unit."""
        bounds = [event.label for event in self.ledger.events if isinstance(event, UnitBound)]
        return self.schema.unit or (bounds[0] if bounds else "")

    @property
    def units_paid_for(self) -> bool:
        """Whether the number of units that were cut is among figures that were paid for."""
        paid = any(getattr(event, "purpose", "") == "quality" for event in self.ledger.events)
        return paid and self.ledger.guarantee.unit == "unit"

    @property
    def measured(self) -> tuple[str, ...]:
        """Features whose bins, or values inside them, were measured (R21)."""
        return self._counted_for("edges")

    @property
    def rare_merged(self) -> tuple[str, ...]:
        """Features whose categories were merged where their noisy count is small (R31)."""
        return self._counted_for("rare")

    def _counted_for(self, purpose: str) -> tuple[str, ...]:
        events = (e.step if isinstance(e, PooledRows) else e for e in self.ledger.events)
        return self._named(
            name
            for event in events
            if isinstance(event, NoisyCounts) and event.purpose == purpose
            for name in event.features
        )

    @property
    def categories_found(self) -> tuple[str, ...]:
        """Features whose categories were found by noisy counts (R29)."""
        found = (e for e in self.ledger.events if isinstance(e, CategoriesFound))
        return self._named(name for event in found for name in event.features)

    @property
    def rules_drafted(self) -> bool:
        """Whether the schema marks rules as first suggested by a table."""
        return any(rule.drafted_from_data for rule in self.schema.rules)

    @property
    def parts_drafted(self) -> tuple[str, ...]:
        """What of the schema is marked as first read off a table: features, and its rules."""
        return (*self.schema.drafted_from_data, *(("its rules",) if self.rules_drafted else ()))

    @property
    def summed(self) -> tuple[str, ...]:
        """Features of which sums of values were measured for declared analyses (R26)."""
        sums = (
            event
            for event in self.ledger.events
            if isinstance(event, NoisySums) and event.purpose == "analysis"
        )
        return self._named(name for event in sums for name in event.features)

    @property
    def recoded(self) -> tuple[str, ...]:
        """Features whose values were put together by public rules; at level 0 they stay."""
        stated = self._parameters("public-recodings")
        pairs = (
            zip(*(each.get(k, ()) for k in ("features", "rules")), strict=False) for each in stated
        )
        return self._named(
            name
            for each in pairs
            for name, rule in each
            if "group" in rule or ("hierarchy" in rule and "level 0" not in rule)
        )

    @property
    def edges_measured(self) -> tuple[str, ...]:
        """Features whose bin edges were measured; those of others were stated."""
        if self._parameters("reviewed-schema"):
            stated = self.assumed("reviewed-schema", "edges")
        else:
            stated = tuple(n for n in self.measured if self.schema[n].inside == "measured")
        return tuple(name for name in self.measured if name not in stated)

    @property
    def preprocessing(self) -> list[str]:
        """One sentence or two for every step before counting, and which way it pulls.

        How many rows or values it concerned is computed from the original, and is said nowhere
        unless it was paid for.
        """
        drawn = [each for each in self.schema.features if each.name not in self.kept]
        said = page(
            "preprocessing.j2",
            facts=self,
            unit=self.unit or "unit",
            folded=rows_folded(self.ledger),
            bounds=[e.rows_per_unit for e in self.ledger.events if isinstance(e, UnitBound)],
            drawn=drawn,
            unlisted=[each.name for each in drawn if each.unknown == "category"],
            ends=_ends,
        )
        return said.splitlines()


def _ends(feature: Feature) -> list[str]:
    """Return the first and the last edge of a feature, as texts."""
    write = partial(bound_text, feature) if feature.calendar else number_text
    return [write(edge) for edge in feature.public_bounds]


COMPLETED = "completed-"
"""How the names of completed tables begin."""


def completed_name(table: int, version: int, suffix: str) -> str:
    """Return the file name of a completed table."""
    return f"{COMPLETED}{table}-{version}.{suffix}"


def wanted_name(number: int) -> str:
    """Return the file of a table of counts that was requested."""
    return f"table-{number}.csv"


SYNTHETIC = "Synthetic data: every row was drawn from a model, and none is that of a person."
PARTLY = "Partly synthetic data: some columns hold values of the original rows."
RESAMPLED = (
    "Resampled data, not synthetic: every row has the categories of a row of the original table."
)


@dataclass(frozen=True)
class Facts(RunFacts):
    """What is known of a release when its tables are written.

    Parameters
    ----------
    schema
        The codebook that is published.
    rows, datasets, versions
        n rows in each of K tables, and the completed versions of each; of a panel n units (R24).
    sizes
        Rows in the file of every table, once it is written.
    about, languages
        What the publisher said, and the languages beside English in which the promise is stated.
    counted
        The codebook of what was counted, where that is another one: of a panel the folded one.
    method
        Name of the method; empty where only the ledger knows it.
    seeded
        Whether results are to be repeated: then no day is taken from the clock.
    decode
        How numbers are written.
    columns
        The columns of every file of a table, as they were written.
    weights_inside
        Whether the table itself holds the weights of its rows, and not a file beside it.
    """

    rows: int
    datasets: int
    table_format: TableFormat
    versions: int = 0
    policy: Policy = NO_POLICY
    about: About = NOTHING
    languages: tuple[str, ...] = ()
    method: str = ""
    seeded: bool = False
    decode: How | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights_inside: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    counted: Schema | None = None

    def __post_init__(self) -> None:
        if not self.method:
            object.__setattr__(self, "method", str(self.options.get("method", "")))

    @property
    def date(self) -> str:
        """The day that the papers bear; empty where there is none."""
        return release_date(self.about, seeded=self.seeded)

    @property
    def title(self) -> str:
        """What the release is called."""
        return self.about.title or f"{self.kind_of_data.capitalize()} tables"

    @property
    def programs(self) -> str:
        """The programs that took part."""
        return ", ".join(map(str, self.ledger.programs))

    @property
    def private(self) -> bool:
        """Whether there is differential privacy."""
        return self.ledger.guarantee.kind in ("pure", "approximate")

    @property
    def not_stated(self) -> tuple[str, ...]:
        """What the publisher could have said; a unit only where the schema names one."""
        return tuple(name for name in self.about.not_stated if name != "unit" or self.unit)

    @property
    def mark(self) -> str:
        """What every table says of itself."""
        if self.lacks_result("kept-columns"):
            return PARTLY
        return RESAMPLED if self.resampled else SYNTHETIC

    @property
    def marks(self) -> dict[str, str]:
        """What a file of a table says of itself."""
        synthetic = "false" if self.resampled else "true"
        return {"synthetic": synthetic, "description": self.mark, "title": self.title}

    @property
    def header(self) -> list[tuple[str, str]]:
        """What the internal report says of the release in its header."""
        lines = (
            ("Release", self.about.title),
            ("Publisher", self.about.owner),
            ("Method", self.method),
            ("Date", self.date),
            ("Made by", self.programs),
        )
        return [(name, text) for name, text in lines if text]

    @property
    def kind_of_data(self) -> str:
        """What the tables are called."""
        if self.kept:
            return "partly synthetic"
        return "resampled" if self.resampled else "synthetic"

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The columns of weights, that of the published counts first."""
        return weights_of(self.ledger)

    @property
    def weight_file(self) -> str:
        """The name of the file of weights; empty where there is none."""
        if self.weights_inside or not self.weight_columns:
            return ""
        return weight_file(f"synthetic-1.{self.table_format}")

    def files(self) -> Iterator[str]:
        """Yield the names of the files of all tables, and that of weights."""
        yield from self.tables()
        if self.weight_file:
            yield self.weight_file

    @property
    def records(self) -> int:
        """Rows in all tables, those of completed versions aside."""
        names = [name for name in self.tables() if not name.startswith(COMPLETED)]
        return sum(self.sizes.get(name, self.rows) for name in names)

    @property
    def size(self) -> str:
        """How many tables there are, and how many rows and units they have."""
        panel, each = self.schema.panel, "" if self.datasets == 1 else " each"
        many = "1 table" if self.datasets == 1 else f"{self.datasets:,} tables"
        if rows_folded(self.ledger) is None:
            return f"{many} of {self.rows:,} rows{each}"
        if panel is None:
            return f"{many} of {self.rows:,} rows{each}, one for each unit"
        units = f"{self.rows:,} units (`{panel.unit}`)"
        if panel.tables is None:
            return f"{many} with {self._written()} rows{each}, those of {units}"
        first, second = panel.tables
        pairs = "2 tables" if self.datasets == 1 else f"{self.datasets:,} pairs of tables"
        return (
            f"{pairs}: `{first}` with {units}, one in a row, and `{second}` with their "
            f"{self._written(f'-{second}')} rows{each}"
        )

    def _written(self, end: str = "") -> str:
        """Return how many rows the tables have whose names end so: one number, or from, to."""
        stems = {name: name.rpartition(".")[0] for name in self.tables()}
        found = [
            self.sizes[name]
            for name, stem in stems.items()
            if stem.endswith(end) and not name.startswith(COMPLETED) and name in self.sizes
        ]
        if not found:
            return "all"
        low, high = min(found), max(found)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    def tables(self) -> Iterator[str]:
        """Yield the names of the files of all tables."""
        panel = self.schema.panel
        for number in range(1, self.datasets + 1):
            if panel is not None and panel.tables is not None:
                for name in panel.tables:
                    yield f"synthetic-{number}-{name}.{self.table_format}"
                continue
            yield f"synthetic-{number}.{self.table_format}"
            for version in range(1, self.versions + 1):
                yield completed_name(number, version, self.table_format)

    def columns_of(self, table: str) -> tuple[str, ...]:
        """Return the columns that the file of a table has, in order."""
        return self.columns.get(table, self.schema.names)

    def described(self, table: str) -> Iterator[tuple[str, Feature | None]]:
        """Yield the columns of the file of a table; features, and None for unit and weights."""
        known = {each.name: each for each in self.schema.columns if not each.dropped}
        for name in self.columns_of(table):
            yield name, known.get(name)

    @property
    def media_type(self) -> str:
        """What a table's file is."""
        return "text/csv" if self.table_format == "csv" else "application/vnd.apache.parquet"
