"""What somebody declared to be public knowledge, kept apart from what was done.

A guarantee holds under its assumptions. They are not priced; the statement repeats them
in words so that the person who declared them can be asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


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
    parameters: dict[str, bool | int | float | str | list[str]] = {}


def reviewed_schema(*, drafted_from_data: Sequence[str] = ()) -> Assumption:
    """Record that a person set ``reviewed = true`` (R10, case a)."""
    text = (
        "the reviewer of the schema declared its categories, their order, bin edges and rows "
        "per unit to be public knowledge"
    )
    if drafted_from_data:
        text += "; the schema marks features whose categories or edges were first read off a table"
    return Assumption(
        code="reviewed-schema",
        text=text,
        parameters={"drafted_from_data": list(drafted_from_data)} if drafted_from_data else {},
    )


def rows_in(count: int) -> Assumption:
    """Record the number of original rows as the user stated it."""
    return Assumption(
        code="rows-in",
        text=f"the number of original rows was stated to be {count} and is public or rounded",
        parameters={"rows_in": count},
    )


def public_shares(names: Sequence[str]) -> Assumption:
    """Record that the schema states shares of categories, which were then not measured."""
    return Assumption(
        code="public-shares",
        text="the shares that the schema states for some features are public and do not depend on "
        f"the original table ({', '.join(names)})",
        parameters={"features": list(names)},
    )


def public_seed_pool(name: str) -> Assumption:
    """Record that chains start from a file that is no part of the confidential table."""
    return Assumption(
        code="public-seed-pool",
        text="the seed rows come from a public file that does not depend on the original table",
        parameters={"file": name},
    )


def public_heads() -> Assumption:
    """Record that head features were listed in the schema."""
    return Assumption(
        code="public-heads",
        text="the head features listed in the schema were chosen without looking at the data",
    )


def rowwise_query(*, declared: bool) -> Assumption:
    """Record that a query of a database gives every row for itself (R10, case a)."""
    text = (
        "the user declared that the query which read the table selects rows one by one"
        if declared
        else "the table was read by a query of the plain form that selects rows one by one"
    )
    return Assumption(code="rowwise-query", text=text, parameters={"declared": declared})
