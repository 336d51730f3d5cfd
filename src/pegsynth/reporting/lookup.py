"""Records found by name and subject, also where there are a hundred thousand of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics, Record

OFF = "utility_faults"
PAIR, GIVEN, TERM = ", ", " | ", " :: "
_VARIED = 2


class Lookup:
    """Saved metrics, indexed once; on a doubled key the first record counts."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._by_key: dict[tuple[str, str], Record] = {}
        self._by_name: dict[str, list[Record]] = {}
        for record in metrics.records:
            self._by_key.setdefault((record.name, record.subject), record)
            self._by_name.setdefault(record.name, []).append(record)

    def record(self, name: str, subject: str = "") -> Record | None:
        """Return the record of that name and subject, if there is one."""
        return self._by_key.get((name, subject))

    def headline(self, name: str) -> Record | None:
        """Return the record that stands for a measure: of a risk its strongest form."""
        from pegsynth.evaluation.records import headline

        return headline(self.named(name), name)

    def subjects(self, name: str) -> list[Record]:
        """Return the records of that name that are about something in particular."""
        return [record for record in self.named(name) if record.subject]

    def named(self, name: str) -> list[Record]:
        """Return all records of that name."""
        return self._by_name.get(name, [])

    def constant(self) -> set[str]:
        """Return the features that have one category only, in all tables: no error is theirs."""
        return {
            marginal.feature
            for marginal in self.metrics.marginals
            if sum(map(any, zip(marginal.original, marginal.synthetic, strict=True))) < _VARIED
        }

    def pairs(self, name: str) -> list[tuple[str, str, Record]]:
        """Return records about two features with these; names may hold separators themselves."""
        features = [marginal.feature for marginal in self.metrics.marginals]
        known = set(features)
        found = []
        separator = GIVEN if name.startswith("conditional") else PAIR
        for record in self.subjects(name):
            pair = _split(record.subject, separator, known)
            if pair is not None:
                found.append((*pair, record))
        return found


def _split(subject: str, separator: str, known: set[str]) -> tuple[str, str] | None:
    at = subject.find(separator)
    while at >= 0:
        first, second = subject[:at], subject[at + len(separator) :]
        if not known or (first in known and second in known):
            return first, second
        at = subject.find(separator, at + 1)
    return None
