"""Non-interference: with given paid answers two tables publish the same bytes.

The broken twins are programs that look at the table beside what they pay for, or pay for another
thing than they do. `pegs audit --full` compares every pair of capabilities.
"""

import ast
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pegsynth
from pegsynth.auditing.interference import Answers, Step, compare, unpaid, worst_ratio
from pegsynth.auditing.interference_cases import (
    CAPABILITIES,
    COMBINED,
    configuration,
    contract_configurations,
)
from pegsynth.cli.asking import inside as command
from pegsynth.errors import ParameterError
from pegsynth.mechanisms import answers, quality_distances
from pegsynth.mechanisms.noise import add_noise
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods import get, methods
from pegsynth.methods.gibbs import block_fitting
from pegsynth.methods.gibbs.block_fitting import one_way_counts
from pegsynth.methods.gibbs.chains import Machine
from pegsynth.methods.gibbs.samplers import RestartedSampler
from pegsynth.methods.released import _pooled, _release
from pegsynth.privacy import BlockDraws, Ledger, NoisyCounts, Selection, UnitBound
from pegsynth.publishing import public_part
from pegsynth.random import RandomStream

BY_NAME = {each.name: each for each in CAPABILITIES}
SOURCE = Path(pegsynth.__file__).parent
CONTRACT = {each.name: each for each in contract_configurations()}


def compared(*names, turn=0):
    return compare(configuration(*(BY_NAME[name] for name in names), turn=turn), command)


# The shipped program


@pytest.mark.parametrize("name", CONTRACT)
def test_no_method_lets_the_table_interfere(name):
    found = compare(CONTRACT[name], command)
    assert not found.broken
    # Urns and log-linear fits are not saved.
    assert found.status == "refused" if name in REFUSED else found.status == "claims"
    assert found.steps or name in REFUSED


REFUSED = ("pegs-capped, urn, saved", "log-linear, saved")


@pytest.mark.parametrize(
    ("turn", "names"),
    [(number % 2, names) for number, names in enumerate(COMBINED)],
    ids=map(", ".join, COMBINED),
)
def test_no_combination_lets_the_table_interfere(turn, names, monkeypatch):
    # Pools of transitions are drawn from what was released; smaller ones take less time.
    monkeypatch.setattr(_pooled, "POOL_ROWS", 1 << 12)
    found = compared(*names, turn=turn)
    assert not found.broken
    assert found.status == "claims"
    # A fit prices any change, and the additional row may lack the given value.
    assert max(found.ratios.values()) > 0 or {"pmi", "given values"} & set(names)


def test_every_capability_is_in_a_combination_and_every_method_with_a_claim():
    assert {name for names in COMBINED for name in names} == set(BY_NAME)
    tried = {
        arguments[i + 1]
        for each in CONTRACT.values()
        for arguments in each.commands
        for i, text in enumerate(arguments)
        if text == "--method"
    }
    assert tried == {each.name for each in methods() if each.has_proof}


# Broken twins


def exact_rows(table):
    return len(table) if isinstance(table, np.ndarray) else table.rows


def a_size(monkeypatch):
    """The size of an array, here of the candidate rows, follows the exact number of rows."""
    shipped = _release.release_blocks

    def twin(table, *arguments, rows=None, **options):
        return shipped(table, *arguments, rows=(rows or 0) + exact_rows(table), **options)

    monkeypatch.setattr(_release, "release_blocks", twin)


def rows_of_a_file(monkeypatch):
    """A published file has a row for every ten rows of the table more."""
    shipped = RestartedSampler.tables

    def twin(self, rows, datasets, stream):
        held = int(self.machine.entries.dense_cumulative.max())
        return shipped(self, rows + held // 10, datasets, stream)

    monkeypatch.setattr(RestartedSampler, "tables", twin)


def a_file(monkeypatch):
    """A document holds an exact count."""
    shipped = public_part.write_wanted

    def twin(public, session, **options):
        shipped(public, session, **options)
        rows = int(one_way_counts(session.model.content.blocks)[0].sum())
        (public / "NOTES.md").write_text(f"made from {rows} rows\n")

    monkeypatch.setattr(public_part, "write_wanted", twin)


def a_message(monkeypatch):
    """A message holds an exact count."""
    shipped = block_fitting.pair_scores

    def twin(pairs, *arguments):
        sys.stderr.write(f"{int(pairs.one_way_counts()[0].sum())} rows\n")
        return shipped(pairs, *arguments)

    monkeypatch.setattr(block_fitting, "pair_scores", twin)


def a_loop_bound(monkeypatch):
    """The number of rounds follows exact counts."""
    shipped = _release.release_blocks

    def twin(table, domain, budget_filter, work, **options):
        steps = replace(work.steps, rounds=max(exact_rows(table) // 10, 1))
        return shipped(table, domain, budget_filter, replace(work, steps=steps), **options)

    monkeypatch.setattr(_release, "release_blocks", twin)


def a_stop(monkeypatch):
    """A command fails where the table has few rows."""
    shipped = block_fitting.noisy_marginals

    def twin(counts, event, stream):
        if counts[0].sum() > 50:
            return shipped(counts, event, stream)
        raise ParameterError("the table is too small")

    monkeypatch.setattr(block_fitting, "noisy_marginals", twin)


@pytest.mark.parametrize(
    ("twin", "names", "shown"),
    [
        (a_size, (), "synthetic-1.csv differs"),
        (rows_of_a_file, ("pegs",), "synthetic-1.csv differs"),
        (a_file, ("pegs",), "NOTES.md differs"),
        (a_message, ("pegs",), "command 1 differs"),
        (a_loop_bound, (), "the steps differ"),
        (a_stop, ("pegs",), "command 1 differs: exit"),
    ],
)
def test_a_program_that_looks_beside_what_it_pays_for_is_caught(monkeypatch, twin, names, shown):
    twin(monkeypatch)
    broken = compared(*names).broken
    assert any(shown in line for line in broken), broken


def unseen_noise(monkeypatch):
    """A filter that pays, and adds its noise beside the seam."""
    monkeypatch.setattr(
        PrivacyFilter,
        "_noisy",
        lambda self, counts, event: add_noise(counts, event, self._stream),
    )


def unseen_marginals(monkeypatch):
    """A step that has its event in the ledger, and looks at no count at all."""
    flat = block_fitting.noisy_marginals

    def twin(counts, event, stream):
        return flat([np.ones_like(line) for line in counts], event, RandomStream(1))

    monkeypatch.setattr(block_fitting, "noisy_marginals", twin)


def unseen_draws(monkeypatch):
    """Draws that read the counts beside the seam."""
    monkeypatch.setattr(Machine, "drawn", lambda self, stream, rows: self)


def a_second_look(monkeypatch):
    """A step that is asked twice and paid once."""
    shipped = answers.noisy

    def twin(counts, event, stream, **options):
        shipped(counts, event, stream, **options)
        return shipped(counts, event, stream, **options)

    monkeypatch.setattr(answers, "noisy", twin)


def more_rows(monkeypatch):
    """More rows are drawn than are charged; those beyond are thrown away."""
    shipped = RestartedSampler.tables

    def twin(self, rows, datasets, stream):
        return shipped(self, rows, 2 * datasets, stream)[:datasets]

    monkeypatch.setattr(RestartedSampler, "tables", twin)


@pytest.mark.parametrize(
    ("twin", "names", "shown"),
    [
        (unseen_noise, (), "events without a step: NoisyCounts total"),
        (unseen_marginals, ("pegs",), "1 events without a step: NoisyCounts marginals"),
        (unseen_draws, ("pegs",), "no draw has its event"),
        (a_second_look, ("pegs",), "1 steps without an event: NoisyCounts marginals"),
        (more_rows, ("pegs",), "more rows were drawn than an event pays for"),
    ],
)
def test_a_step_that_goes_another_way_than_the_ledger_says_is_caught(
    monkeypatch, twin, names, shown
):
    twin(monkeypatch)
    broken = compared(*names).broken
    assert any(shown in line for line in broken), broken


def doubled_counts(monkeypatch):
    """Counts in which every row counts twice."""
    shipped = PrivacyFilter.measure
    monkeypatch.setattr(
        PrivacyFilter,
        "measure",
        lambda self, counts, *arguments, **about: shipped(self, 2 * counts, *arguments, **about),
    )


def doubled_scores(monkeypatch):
    """Scores of sensitivity 2."""
    shipped = block_fitting.pair_scores
    monkeypatch.setattr(block_fitting, "pair_scores", lambda *given: 2 * shipped(*given))


def doubled_distances(monkeypatch):
    """Distances that one row changes by 2."""
    shipped = quality_distances.distance
    monkeypatch.setattr(quality_distances, "distance", lambda *given: 2 * shipped(*given))


@pytest.mark.parametrize(
    ("twin", "names", "kind"),
    [
        (doubled_counts, (), "NoisyCounts"),
        (doubled_scores, ("pegs",), "Selection"),
        (doubled_distances, ("quality",), "NoisyCounts"),
    ],
)
def test_a_price_that_is_too_low_is_caught(monkeypatch, twin, names, kind):
    twin(monkeypatch)
    found = compared(*names)
    assert found.ratios[kind] > 1
    assert any(f"{kind}: a unit changes" in line for line in found.broken)


# What is compared


def noise(purpose="marginals", cells=2):
    return NoisyCounts.laplace(1.0, cells=cells, purpose=purpose)


def stepped(event, *lines):
    return Step(event, 2, tuple(map(Counter, lines)))


def test_steps_and_events_are_matched_one_by_one():
    choice = Selection.of(1, count=2, purpose="order")
    draws = BlockDraws(
        alpha_numerator=1, alpha_denominator=1, features=2, rows=10, block_size=5, datasets=2
    )
    ledger = Ledger((noise(), choice, draws))
    steps = [stepped(noise()), stepped(choice), stepped(choice), Step(None, 20, ())]
    assert unpaid(steps, [ledger]) == []
    assert unpaid(steps[1:], [ledger]) == ["1 events without a step: NoisyCounts marginals"]
    assert unpaid([*steps, steps[1]], [ledger]) == ["1 steps without an event: Selection order"]
    assert unpaid(steps[:3], [ledger]) == ["no draw has its event"]
    assert unpaid([*steps, Step(None, 1, ())], [ledger]) == [
        "more rows were drawn than an event pays for"
    ]
    assert unpaid(steps, [replace(ledger, events=ledger.events[:2])]) == [
        "rows were drawn that no event pays for"
    ]


def test_changes_are_measured_in_what_the_ledger_prices():
    event = noise(cells=2)
    steps = [stepped(event, {0: 5, 1: 1})], [stepped(event, {0: 8, 2: 2})]
    bounded = Ledger((UnitBound(rows_per_unit=3), event))
    # Absolute changes add up to 6, squares to 14; priced are 2 k and 2 k^2.
    assert worst_ratio(*steps, [bounded]) == {"NoisyCounts": 1.0}
    assert worst_ratio(*steps, [Ledger((event,))]) == {"NoisyCounts": 7.0}


def test_an_audit_stream_is_not_seeded_and_its_children_answer_too():
    given = Answers()
    stream = given.stream(None)
    assert not stream.seeded
    counts = np.array([1, 2, 3])
    for each in (stream, stream.child(), stream.aside("this")):
        assert len(answers.noisy(counts, noise(), each)) == 3
    assert len(given.steps) == 3


def test_only_audits_make_a_stream_that_answers():
    with pytest.raises(ParameterError, match="streams"):
        pegsynth.synthesize([], None, streams=Answers().stream)
    plain = answers.noisy(np.zeros(1000, np.int64), noise(), RandomStream())
    assert len(set(plain.tolist())) > 1


def test_noise_and_choices_are_called_by_the_seam_alone():
    """Replicates put noise of their own on zeros, which look at no count."""
    allowed = {
        "mechanisms/answers.py": {"add_noise", "choose"},
        "methods/released/_replicates.py": {"add_noise"},
        "methods/released/_shape_replicates.py": {"add_noise"},
    }
    found = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "pegsynth.mechanisms.noise":
                names = {each.name for each in node.names} & {"add_noise", "choose", "fill"}
                if names:
                    found.setdefault(str(path.relative_to(SOURCE)), set()).update(names)
    assert found == allowed


def test_a_method_without_a_claim_is_not_compared():
    made = configuration(BY_NAME["pegs"])
    (release,) = made.commands
    seeded = replace(made, commands=((*release, "--seed", "1"),))
    assert compare(seeded, command).status == "promises nothing"
    assert get("bootstrap").has_proof is False
