"""What the papers of a release are made of; of the table it holds what was paid for alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pegsynth.inference.choice import weights_of
from pegsynth.options import How
from pegsynth.privacy.statement import rows_folded
from pegsynth.publishing.about import NOTHING, About, release_date
from pegsynth.publishing.completed_texts import COMPLETED, completed_name
from pegsynth.publishing.policy import NO_POLICY, Policy
from pegsynth.publishing.result import TableFormat
from pegsynth.publishing.run_facts import RunFacts
from pegsynth.schema import Feature, Schema
from pegsynth.weight_names import weight_file

SYNTHETIC = "Synthetic data: every row was drawn from a model, and none is that of a person."
PARTLY = "Partly synthetic data: some columns hold values of the original rows."
RESAMPLED = (
    "Resampled data, not synthetic: every row has the categories of a row of the original table."
)


@dataclass(frozen=True)
class Papers:
    """What was asked for: who publishes, and in which languages beside English."""

    about: About = NOTHING
    languages: tuple[str, ...] = ()


NO_PAPERS = Papers()


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
    papers: Papers = NO_PAPERS
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
    def about(self) -> About:
        """What the publisher said."""
        return self.papers.about

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


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
