"""What somebody declared to be public knowledge, kept apart from what was done.

A guarantee holds under its assumptions. They are not priced; the statement repeats them
in words so that the person who declared them can be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

Parameters: TypeAlias = dict[str, bool | int | float | str | list[str]]


class Assumption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One declaration.

    Parameters
    ----------
    code
        A stable short name.
    text
        The declaration in a sentence.
    parameters
        The public figures or names it is about.
    """

    code: str
    text: str
    parameters: Parameters = {}


def reviewed_schema(
    *,
    drafted_from_data: Sequence[str] = (),
    categories: Sequence[str] = (),
    edges: Sequence[str] = (),
    bounds: Sequence[str] = (),
    rows_per_unit: int | None = None,
    drafted_rules: Sequence[str] = (),
) -> Assumption:
    """Record that a person set ``reviewed = true`` (R10, case a).

    Parameters
    ----------
    drafted_from_data
        Features that the schema marks as first read off a table.
    categories, edges
        Features with listed categories, and those with listed bin edges. Others are found or
        measured, and paid for (R21, R29).
    bounds
        Features whose edges are measured between stated bounds.
    rows_per_unit
        The most rows of a unit, if the schema names a unit.
    drafted_rules
        Rules that the schema marks as first read off a table, by label or by number.
    """
    parts = [
        *(("its categories", "their order") if categories else ()),
        *(("bin edges",) if edges else ()),
        *(("bounds of values",) if bounds else ()),
        *(("rows per unit",) if rows_per_unit else ()),
    ] or ["names and kinds of its features"]
    text = f"the reviewer of the schema declared {_listed(parts)} to be public knowledge"
    if drafted_from_data:
        text += (
            "; the schema marks features whose description was first read off a table "
            f"({', '.join(drafted_from_data)})"
        )
    if drafted_rules:
        text += "; the schema marks rules that were first suggested by a table"
    lists = {
        "drafted_rules": drafted_rules,
        "drafted_from_data": drafted_from_data,
        "categories": categories,
        "edges": edges,
        "bounds": bounds,
    }
    parameters: Parameters = {name: list(names) for name, names in lists.items() if names}
    if rows_per_unit:
        parameters["rows_per_unit"] = rows_per_unit
    return Assumption(code="reviewed-schema", text=text, parameters=parameters)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def unlisted_values(*, refused: Sequence[str], category: Sequence[str]) -> Assumption:
    """Record what becomes of values that the schema has no category for."""
    parts = []
    if refused:
        parts.append(
            "a value that the schema has no category for stops the command, so that only tables "
            "without such values are considered"
        )
    if category:
        where = "of some features" if refused else "of every feature"
        parts.append(f"unlisted values {where} are one category of their own")
    lists = {"refused": list(refused), "category": list(category)}
    parameters: Parameters = {name: names for name, names in lists.items() if names}
    return Assumption(code="unlisted-values", text="; ".join(parts), parameters=parameters)


_STATED: Final[Mapping[str, str]] = {
    "dates-in-order": "a date that is counted from another of its row counts as the same moment "
    "where it is before it, and as missing where the other is not known; which dates are so was "
    "stated in the schema ({names})",
    "public-shares": "the shares that the schema states for some features are public and do not "
    "depend on the original table ({names})",
    "public-descriptions": "the texts that some columns have for the codes of others are public; "
    "the columns themselves were not read ({names})",
    "public-parents": "which feature is a detail of which was stated in the schema without looking "
    "at the data ({names})",
    "given-values": "the values that some features are kept at in every row were chosen without "
    "looking at the original table ({names})",
    "unit-column": "all rows of one unit, and of no other, hold the same value in the column "
    "{column}",
    "rows-in": "the number of original rows was stated to be {rows_in} and is public or rounded",
    "public-seed-pool": "the seed rows come from a public file that does not depend on the "
    "original table",
    "public-heads": "the head features listed in the schema were chosen without looking at the "
    "data",
    "feature-order": "head features follow the order of the features in the schema, which was "
    "chosen without looking at the data",
    "public-options": "the method and all options of the run were chosen without looking at the "
    "original table",
}
"""Declarations by code, with words from their parameters; R30 rests on the first of them."""


def stated(code: str, parameters: Parameters | None = None) -> Assumption:
    """Record a declaration that one sentence says (R10, R12)."""
    about = parameters or {}
    features = about.get("features")
    names = ", ".join(features) if isinstance(features, list) else ""
    text = _STATED[code].format_map({**about, "names": names})
    return Assumption(code=code, text=text, parameters=about)


def panel(
    unit: str, *, time: str, most: int, fixed: Sequence[str], pooled: bool = False
) -> Assumption:
    """Record how the rows of a unit were folded into one before anything was counted (R24).

    Parameters
    ----------
    pooled
        Whether transitions from one row to the next were counted together for all positions.
    """
    same = f"; what is fixed ({', '.join(fixed)}) is the first known value" if fixed else ""
    parameters: Parameters = {"column": unit, "time": time, "most": most}
    if fixed:
        parameters["fixed"] = list(fixed)
    if pooled:
        parameters["transitions"] = "pooled"
        same += (
            f"; how one row leads to the next was counted in one table for all positions, in which "
            f"one {unit} has at most {most - 1} rows"
        )
    return Assumption(
        code="panel",
        text=f"all rows of one {unit} were folded into one row before anything was counted, in the "
        f"order of {time}, and at most {most} of them count{same}; these were stated in the schema "
        "without looking at the data",
        parameters=parameters,
    )


def public_recodings(rules: Mapping[str, str]) -> Assumption:
    """Record by which public rules values were recoded, row by row, before counting (R31)."""
    stated = "; ".join(f"{name}: {rule}" for name, rule in rules.items())
    return Assumption(
        code="public-recodings",
        text="values were recoded row by row before counting, by rules that are public and do not "
        f"depend on the original table ({stated})",
        parameters={"features": list(rules), "rules": list(rules.values())},
    )


def public_rules(features: Sequence[str], *, count: int, drafted: bool = False) -> Assumption:
    """Record that the schema's rules shaped the rows (R18).

    Parameters
    ----------
    drafted
        Whether the schema marks some as first suggested by a table.
    """
    origin = (
        "are taken to be public, those included that a table suggested first"
        if drafted
        else "are public and do not depend on the original table"
    )
    parameters: Parameters = {"features": list(features), "count": count}
    if drafted:
        parameters["drafted"] = True
    return Assumption(
        code="public-rules",
        text=f"the rules of the schema, on combinations that cannot occur, {origin}",
        parameters=parameters,
    )


def public_diversity(levels: Mapping[str, float]) -> Assumption:
    """Record which features were made l-diverse, and with which l each (R7)."""
    figures = [f"{level:g}" for level in levels.values()]
    stated = ", ".join(map(" ".join, zip(levels, figures, strict=True)))
    return Assumption(
        code="public-l",
        text=f"which features are made l-diverse, and their l, was stated without looking at the "
        f"data ({stated})",
        parameters={"features": list(levels), "l": figures},
    )


def rowwise_query(*, declared: bool) -> Assumption:
    """Record that a query of a database gives every row for itself (R10, case a)."""
    text = (
        "the user declared that the query which read the table selects rows one by one"
        if declared
        else "the table was read by a query of the plain form that selects rows one by one"
    )
    return Assumption(code="rowwise-query", text=text, parameters={"declared": declared})
