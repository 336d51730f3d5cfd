"""Hypothesis strategies for codebooks and CSV tables, well formed and wild in what they hold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from checks.fuzz.tables import SECRET
from checks.fuzz.trees import NUMBERS, TEXTS, toml_text

texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=8))
numbers = st.one_of(
    st.sampled_from(NUMBERS), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.one_of(texts, numbers, st.booleans())


@st.composite
def features(draw: Any) -> dict[str, Any]:
    """Draw a feature that may or may not be sound."""
    known = {
        "name": st.one_of(st.sampled_from(("a", "b", "c", "n")), texts),
        "kind": st.sampled_from(("nominal", "ordinal", "numeric", "other")),
        "role": st.sampled_from(("other", "identifier", "sensitive", "quasi-identifier", "x")),
        "dtype": st.sampled_from(("", "string", "int64", "float64", "date", "boolean", "x")),
        "categories": st.lists(
            st.one_of(st.sampled_from(("x", "y", "p", "k")), scalars), max_size=5
        ),
        "edges": st.lists(numbers, max_size=4),
        "missing": st.lists(texts, max_size=2),
        "not_applicable": st.lists(texts, max_size=2),
        "unknown": st.sampled_from(("error", "category", "x")),
        "heads": st.lists(st.sampled_from(("a", "b", "x")), max_size=2),
        "l": numbers,
        "parent": st.sampled_from(("a", "b", "x")),
        "shares": st.lists(numbers, max_size=4),
        "drafted_from_data": st.booleans(),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(set(known) - {"name"})), max_size=5))
    return {"name": draw(known["name"])} | {key: draw(known[key]) for key in sorted(chosen)}


@st.composite
def schemas(draw: Any) -> bytes:
    """Draw the text of a schema file."""
    tree: dict[str, Any] = {"reviewed": draw(st.booleans())}
    if draw(st.booleans()):
        tree["table"] = {"unit": draw(texts), "rows_per_unit": draw(numbers)}
    tree["features"] = draw(st.lists(features(), min_size=1, max_size=4))
    if draw(st.booleans()):
        forbidden = st.dictionaries(st.sampled_from(("a", "b", "x")), st.lists(texts, max_size=2))
        tree["rules"] = [{"forbid": draw(forbidden)}]
    return toml_text(tree).encode("utf-8", "replace")


@st.composite
def tables(draw: Any) -> bytes:
    """Draw a CSV file that follows the rules of quoting."""
    names = draw(st.lists(texts, min_size=1, max_size=4))
    cell = st.one_of(st.just(SECRET), texts, numbers.map(str))
    rows = draw(st.lists(st.lists(cell, min_size=len(names), max_size=len(names)), max_size=5))
    lines = [",".join(_quoted(each) for each in row) for row in (names, *rows)]
    return "\n".join((*lines, "")).encode("utf-8", "replace")


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
