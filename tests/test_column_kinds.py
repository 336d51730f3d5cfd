"""Drafts of public tables against kinds that were set by hand."""

import pytest

from checks.bench import column_kinds


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize(
    ("part", "least"),
    # Tables that were drawn after all words were written: 214 of 226 columns.
    [("tuning", 0.95), ("confirming", 0.95), ("fresh", 0.94)],
)
def test_drafts_take_columns_for_what_they_are_and_are_quiet(part, least):
    found = list(column_kinds.compared(part))
    assert len(column_kinds.kinds(part)) >= 20
    assert sum(right for *_, right in found) >= least * len(found)
    remarks = [len(column.notes) for _, column, *_ in found]
    assert max(remarks) <= 1
    assert sum(remarks) <= 0.5 * len(found)


def test_kinds_that_are_not_the_same():
    assert column_kinds.agrees("number", "ordinal", numbers=True)
    assert not column_kinds.agrees("ordinal", "nominal", numbers=False)
    assert not column_kinds.agrees("key", "numeric", numbers=True)
    assert not column_kinds.agrees("two", "numeric", numbers=True)
