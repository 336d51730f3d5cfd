"""Estimates and variances as analysts have them, turned into K x p tables.

K numbers are one quantity; K rows of p numbers are p; a mapping or dataframe of columns,
or a sequence of K mappings (or pandas Series), names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.combining_rules import Numbers
from pegsynth.tables.caller_frames import frame_kind


@dataclass(frozen=True)
class Table:
    """K x p numbers; one row per dataset.

    Parameters
    ----------
    values
        The numbers.
    names
        Names of the p quantities; empty when they have none.
    scalar
        Whether the caller gave plain numbers, and wants one back.
    """

    values: Numbers
    names: tuple[str, ...] = ()
    scalar: bool = False


def matched(estimates: object, variances: object) -> tuple[Table, Numbers]:
    """Read both, check them, and return the variances in the order of the estimates."""
    first, second = read(estimates, "estimates"), read(variances, "variances")
    if first.names and second.names:
        second = _reordered(second, first.names)
    if first.values.shape != second.values.shape:
        raise ParameterError(
            "estimates and variances must have the same shape: one number per dataset and "
            "quantity (of a covariance matrix take the diagonal)"
        )
    _check_filled(first)
    if (second.values < 0).any():
        raise ParameterError("variances cannot be negative (standard errors must be squared)")
    return first, second.values


def alone(estimates: object) -> Table:
    """Read estimates whose variances are not needed."""
    table = read(estimates, "estimates")
    _check_filled(table)
    return table


def one_each(values: Any, table: Table, what: str) -> Numbers:
    """Read one number for every quantity of a table: a number, p numbers, or a mapping."""
    if table.names and hasattr(values, "keys"):
        check_same(tuple(map(str, values.keys())), table.names, what)
        by_name = {str(name): values[name] for name in values.keys()}  # noqa: SIM118
        values = [by_name[name] for name in table.names]
    found = np.atleast_1d(_numbers(values, what))
    if found.shape != table.values.shape[1:]:
        raise ParameterError(f"{what} must hold one number for every quantity")
    return found


def _check_filled(table: Table) -> None:
    check_enough(len(table.values))
    if table.values.size == 0:
        raise ParameterError("there are no estimates to combine")


def check_enough(datasets: int) -> None:
    """Refuse a single dataset."""
    if datasets < 2:
        raise ParameterError(
            "combining needs estimates from at least 2 datasets; one dataset does not tell how "
            "much synthesis itself varies"
        )


def read(data: Any, what: str) -> Table:
    """Read one table; `what` names it in messages."""
    if frame_kind(data) is not None:
        names = getattr(data, "column_names", None) or data.columns
        return _keyed({name: data[name] for name in names}, what)
    if isinstance(data, Mapping):
        return _keyed(data, what)
    if isinstance(data, Sequence) and data and all(hasattr(row, "keys") for row in data):
        return _rows(data, what)
    values = _numbers(data, what)
    if values.ndim not in (1, 2):
        raise ParameterError(f"{what} must be K numbers, or K rows of p numbers each")
    scalar = values.ndim == 1
    return Table(values[:, np.newaxis] if scalar else values, scalar=scalar)


def _keyed(columns: Mapping[Any, Any], what: str) -> Table:
    values = _numbers([_numbers(column, what) for column in columns.values()], what)
    if values.ndim != 2:
        raise ParameterError(f"{what}: every name needs K numbers, one per dataset")
    return Table(values.T, tuple(map(str, columns)))


def _rows(rows: Sequence[Any], what: str) -> Table:
    names = tuple(rows[0].keys())
    for number, row in enumerate(rows, start=1):
        check_same(tuple(row.keys()), names, f"{what}: dataset {number}")
    values = _numbers([[row[name] for name in names] for row in rows], what)
    if values.ndim != 2:
        raise ParameterError(f"{what}: every dataset needs one number per name")
    return Table(values, tuple(map(str, names)))


def _reordered(table: Table, names: tuple[str, ...]) -> Table:
    check_same(table.names, names, "variances")
    order = [table.names.index(name) for name in names]
    return Table(table.values[:, order], names)


def check_same(found: Sequence[object], wanted: Sequence[object], where: str) -> None:
    """Refuse other names than those wanted, naming the first that is missing or foreign."""
    for name in wanted:
        if name not in found:
            raise ParameterError(
                f"{where} lacks the quantity {str(name)!r}, which others have; fit the same "
                "model to every dataset"
            )
    for name in found:
        if name not in wanted:
            raise ParameterError(
                f"{where} has the quantity {str(name)!r}, which others lack; fit the same model "
                "to every dataset"
            )


def _numbers(data: object, what: str) -> Numbers:
    try:
        values = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{what} must be numbers, as many from every dataset as from the others"
        ) from None
    if not np.isfinite(values).all():
        raise ParameterError(f"{what} must be finite numbers; one is missing or infinite")
    return values
