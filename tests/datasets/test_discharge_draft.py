"""The schema that the demo releases: drafted from the table, with what a reviewer adds."""

import pytest

from pegsynth import Schema
from pegsynth.datasets import discharge, discharge_schema, reviewed_discharge_draft


@pytest.fixture(scope="module")
def reviewed():
    return reviewed_discharge_draft(Schema.draft(discharge(50_000, seed=1)), "A. Nowak")


def test_numbers_are_measured_and_nothing_else_is_guessed(reviewed):
    known = discharge_schema()
    for feature in reviewed.features:
        numeric = known[feature.name].kind == "numeric"
        assert (feature.kind == "numeric") == numeric
        assert feature.private_edges == numeric
        assert numeric or set(feature.categories) <= set(known[feature.name].categories)


def test_the_review_states_what_a_person_knows(reviewed):
    assert reviewed.reviewed
    assert reviewed.reviewer == "A. Nowak"
    assert reviewed["charge"].role == "sensitive"
    assert [rule.label for rule in reviewed.rules] == [
        "MDC 12 (male reproductive system) is not of women",
        "MDC 13 (female reproductive system) is not of men",
        "MDC 14 (pregnancy) is not of men",
    ]
    assert len(reviewed.analyses) == len(reviewed.tables_wanted) == 1
