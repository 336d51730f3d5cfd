"""What HOW-TO-ANALYSE.md says of tables and analyses that were declared (R26)."""

from __future__ import annotations

from pegsynth.inference.choice import has_own_noise, replicates_of
from pegsynth.inference.value_columns import is_numeric
from pegsynth.publishing.facts import RunFacts
from pegsynth.schema import Schema


def wanted_name(number: int) -> str:
    """Return the file of a table that was wanted."""
    return f"table-{number}.csv"


def wanted_section(schema: Schema) -> str:
    """Return the section on tables that were wanted; empty if there are none."""
    if not schema.tables_wanted:
        return ""
    lines = [
        f"- `{wanted_name(number)}`: {' x '.join(table.features)}"
        for number, table in enumerate(schema.tables_wanted, start=1)
    ]
    return "\n".join(("## Tables of counts", "", *lines, "", _WANTED))


def analyses_section(facts: RunFacts) -> str:
    """Return the section on declared analyses; empty if there are none."""
    schema, ledger = facts.schema, facts.ledger
    if not schema.analyses:
        return ""
    lines = [f"- `{each.formula}` ({each.family})" for each in schema.analyses]
    said = ["These were declared before the table was read."]
    if facts.summed:
        said.append(_SUMS)
        if replicates_of(ledger) is not None:
            said.append("The replicate weights have that noise in them.")
        elif has_own_noise(ledger):
            said.append("The tables have that noise in them.")
        if any(is_numeric(schema[name]) for name in facts.summed):
            said.append(_CLIPPED)
    else:
        said.append("This method measures nothing for them: look at them as at any other.")
    return "\n".join(("## Declared analyses", "", *lines, "", " ".join(said)))


_SUMS = (
    "The sums that they need were measured with noise (`noisy-sums` in `privacy.json`), and the "
    "values of the rows agree with them."
)

_CLIPPED = (
    "Numbers were clipped at both ends before they were added up, at bounds that were paid for: "
    "what lies beyond comes from the model."
)


_WANTED = """Take counts of these tables from these files, not from rows. `count` is the count of
the original table with noise; `std_error`, and `low` to `high` (95 %), are about that noise, so
they hold the count of the original table. For a claim about a population add its sampling
variance, which is about the count itself. `shrunk` is pulled towards the model: nearer on average,
without an interval of its own."""
