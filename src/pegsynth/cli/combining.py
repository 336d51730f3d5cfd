"""``pegs combine``: one estimate and interval per term from the estimates of K datasets."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pegsynth.errors import DataError, ModelError, ParameterError, escaped
from pegsynth.inference import RULES, Rule, combine
from pegsynth.inference.pooled_result import text
from pegsynth.options.command_options import CombineOptions
from pegsynth.privacy import Ledger


@dataclass(frozen=True)
class _Line:
    """One estimate of the file."""

    dataset: str | None
    imputation: str | None
    term: str
    estimate: float
    variance: float


def run(file: Path, options: CombineOptions) -> None:
    """Read the estimates, combine them and print a table with its notes."""
    ledger = None if options.ledger is None else read_ledger(options.ledger)
    lines = _by_term(_read(file), file)
    first = next(iter(lines.values()))
    # How often each dataset was completed, where the file says so.
    completed = first[0].imputation is not None
    datasets = len({line.dataset for line in first})
    combined = combine(
        {term: [line.estimate for line in found] for term, found in lines.items()},
        {term: [line.variance for line in found] for term, found in lines.items()},
        rule=_rule(options.rule),
        rows=options.rows,
        rows_in=options.rows_in,
        ledger=ledger,
        imputations=len(first) // datasets if completed else None,
        analysis=options.analysis,
    )
    print(escaped(text(combined, options.level)))


def _rule(name: str | None) -> Rule | None:
    if name is not None and name not in RULES:
        raise ParameterError(f"--rule is one of {', '.join(RULES)}, not {name!r}")
    return name  # type: ignore[return-value]


def read_ledger(file: Path) -> Ledger:
    """Read the ``privacy.json`` that a flag names."""
    try:
        return Ledger.from_json(file.read_bytes(), source=str(file))
    except OSError as error:
        raise ModelError(f"{file}: the ledger cannot be read ({error.strerror})") from None


def _read(file: Path) -> list[_Line]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle, strict=True)
            column = _spread_column(reader.fieldnames or (), file)
            return [_line(row, reader.line_num, column, file) for row in reader]
    except OSError as error:
        raise DataError(f"{file}: the estimates cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{file}: this is not a CSV file in UTF-8") from None


def _spread_column(names: object, file: Path) -> str:
    """Check the heading; return the name of the column that tells the uncertainty."""
    found = Counter(names if isinstance(names, list) else [])
    for name in ("term", "estimate"):
        if found[name] != 1:
            raise DataError(
                f"{file}: needs one column {name!r}; the columns are term, estimate, variance or "
                "std_error, and dataset if you like; for completed tables also imputation"
            )
    if found["imputation"] and not found["dataset"]:
        raise DataError(f"{file}: a column imputation needs a column dataset beside it")
    if found["variance"] + found["std_error"] != 1:
        raise DataError(f"{file}: needs one column variance or std_error, and not both")
    return "variance" if found["variance"] else "std_error"


def _line(row: dict[str, str | None], number: int, column: str, file: Path) -> _Line:
    term = row["term"]
    if not term or None in row:
        raise DataError(f"{file}: line {number} has no term, or too many values")
    estimate = _number(row, "estimate", number, file)
    spread = _number(row, column, number, file)
    if spread < 0:
        raise DataError(f"{file}: line {number}: the {column} is negative")
    variance = spread if column == "variance" else spread**2
    return _Line(row.get("dataset"), row.get("imputation"), term, estimate, variance)


def _number(row: dict[str, str | None], column: str, number: int, file: Path) -> float:
    try:
        return float(row[column] or "")
    except ValueError:
        raise DataError(f"{file}: line {number}: the {column} is not a number") from None


def _by_term(lines: list[_Line], file: Path) -> dict[str, list[_Line]]:
    """Group lines, each term's in the same order of datasets and their imputations."""
    terms: dict[str, list[_Line]] = {}
    for line in lines:
        terms.setdefault(line.term, []).append(line)
    if not terms:
        raise DataError(f"{file}: holds no estimates")
    first, expected = next(iter(terms.items()))
    for term, found in terms.items():
        _check_datasets(term, found, file)
        if len(found) != len(expected) or _places(found) != _places(expected):
            raise DataError(
                f"{file}: the terms {first!r} and {term!r} are not there once for each of the "
                "same datasets"
            )
        if found[0].imputation is not None:
            found.sort(key=lambda line: (str(line.dataset), str(line.imputation)))
    return terms


def _places(lines: list[_Line]) -> set[tuple[str | None, str | None]]:
    return {(line.dataset, line.imputation) for line in lines}


def _check_datasets(term: str, lines: list[_Line], file: Path) -> None:
    if lines[0].dataset is not None and len(_places(lines)) < len(lines):
        raise DataError(f"{file}: the term {term!r} is there twice for one dataset")
    if lines[0].imputation is not None:
        counts = Counter(line.dataset for line in lines)
        if len(set(counts.values())) > 1:
            raise DataError(
                f"{file}: the term {term!r} has not as many imputations for every dataset"
            )
