"""What the internal report of a release measures beside the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegsynth.errors import DataError
from pegsynth.options import Publication
from pegsynth.schema import Schema


@dataclass(frozen=True)
class Judging:
    """What the internal report measures beside the tables.

    Parameters
    ----------
    holdout
        Real rows that the synthesizer never saw.
    target
        A feature, or a comparison, to predict in real rows.
    formulas
        Regressions to compare; empty: those that go with the schema.
    """

    holdout: Any = None
    target: str | None = None
    formulas: tuple[str, ...] = ()

    @classmethod
    def of(cls, publication: Publication) -> Judging:
        """Return what a publication asks of the report."""
        return cls(publication.holdout, publication.target, publication.formulas)

    def check(self, schema: Schema) -> None:
        """Refuse, before any budget is spent, what could not be measured afterwards."""
        from pegsynth.evaluation.evaluate import options_of
        from pegsynth.tables.table_input import open_table

        options_of(schema, target=self.target, formulas=self.formulas or None)
        if self.holdout is None:
            return
        with open_table(self.holdout, dialect=schema.dialect) as reader:
            lacking = [name for name in schema.names if name not in reader.columns]
            if lacking:
                raise DataError(
                    f"{reader.source}: the hold-out lacks the column {lacking[0]!r}; give rows "
                    "with all columns of the schema"
                )


NO_JUDGING = Judging()
