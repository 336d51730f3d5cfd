"""``privacy.json``: round trip, tampering, and files that mean harm."""

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.errors import ModelError, ParameterError
from pegsynth.privacy import (
    Assumption,
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    Diversity,
    ImputationDraws,
    Ledger,
    NoisyCounts,
    NotPrivate,
    PegsDraws,
    Program,
    Selection,
    UnitBound,
    UnknownEvent,
    UrnDraws,
    verify,
)
from pegsynth.privacy.privacy_json import FORMAT

POSITIVE = st.integers(1, 2**62)
TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=8)
BASE = {
    "label": TEXT,
    "alpha_numerator": POSITIVE,
    "alpha_denominator": POSITIVE,
    "features": POSITIVE,
}
ROWS = {**BASE, "rows": POSITIVE, "datasets": POSITIVE}
SWEPT = {**ROWS, "sweeps": POSITIVE}
SCALES = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), st.floats(1e-9, 1e9)
)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
ABOUT_COUNTS = st.builds(
    lambda names, levels, cells: {
        "features": names,
        "levels": tuple(levels[: len(names)]) if len(levels) >= len(names) else (),
        "table_cells": cells,
    },
    NAMES,
    st.lists(POSITIVE, max_size=3),
    st.none() | POSITIVE,
)
ABOUT_CHOICES = st.fixed_dictionaries(
    {"features": NAMES, "candidates": st.none() | POSITIVE, "among": TEXT, "chosen": NAMES}
)
COVERED = st.one_of(
    st.builds(PegsDraws, **SWEPT),
    st.builds(BlockDraws, **SWEPT, block_size=POSITIVE),
    st.builds(CappedDraws, **BASE, visits=POSITIVE, rows=st.none() | POSITIVE),
    st.builds(UrnDraws, **BASE, visits=POSITIVE, urns=POSITIVE),
    st.builds(ImputationDraws, **SWEPT),
    st.builds(ContingencyDraws, **ROWS),
    st.builds(lambda *a: NoisyCounts.laplace(a[0], cells=a[1], purpose=a[2], **a[3]),
              SCALES, POSITIVE, TEXT, ABOUT_COUNTS),
    st.builds(lambda *a: NoisyCounts.gaussian(a[0], cells=a[1], purpose=a[2], **a[3]),
              SCALES, POSITIVE, TEXT, ABOUT_COUNTS),
    st.builds(lambda *a: Selection.of(a[0], count=a[1], purpose=a[2], **a[3]),
              SCALES, POSITIVE, TEXT, ABOUT_CHOICES),
    st.builds(UnitBound, rows_per_unit=st.integers(1, 1000)),
)  # fmt: skip
VOID = st.one_of(
    st.builds(NotPrivate, code=TEXT, text=TEXT),
    st.just(UnknownEvent("quantum", {"kind": "quantum", "depth": [1, {"x": None}], "big": 10**40})),
    st.builds(Diversity, l=st.floats(1, 99), features=st.lists(TEXT, max_size=3).map(tuple)),
)
ASSUMPTIONS = st.builds(
    Assumption,
    code=TEXT,
    text=TEXT,
    parameters=st.dictionaries(TEXT, st.booleans() | st.integers(0, 10**9) | TEXT, max_size=2),
)
LEDGERS = st.builds(
    Ledger,
    st.lists(COVERED | VOID, max_size=4) | st.lists(COVERED, max_size=4),
    st.lists(ASSUMPTIONS, max_size=2),
    st.none() | st.sampled_from((1e-12, 1e-9, 1e-6)),
    st.lists(
        st.builds(
            Program,
            version=TEXT.filter(bool),
            commit=st.sampled_from(("", "0" * 40, "a1" * 32)),
            changed=st.booleans(),
        ),
        max_size=2,
    ),
)


@settings(deadline=None, max_examples=150)
@given(LEDGERS)
def test_round_trip(ledger: Ledger) -> None:
    text = ledger.to_json()
    read = Ledger.from_json(text)
    assert read.to_json() == text
    assert read.events == ledger.events
    assert read.assumptions == ledger.assumptions
    assert read.programs == ledger.programs
    assert read.guarantee == ledger.guarantee
    assert verify(text) == []
    for value in json.loads(text)["guarantee"].values():
        assert not isinstance(value, float) or math.isfinite(value)


def example(delta: float | None = 1e-9) -> Ledger:
    draws = PegsDraws(features=13, rows=10, alpha_numerator=99, alpha_denominator=2)
    return Ledger((UnitBound(rows_per_unit=2), draws), delta=delta)


def changed(path: tuple[str | int, ...], value: Any, ledger: Ledger | None = None) -> str:
    content = json.loads((ledger or example()).to_json())
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(content)


def test_the_shape_of_the_file() -> None:
    content = json.loads(example(None).to_json())
    assert list(content) == [
        "format", "programs", "guarantee", "assumptions", "not_covered", "events",
    ]  # fmt: skip
    assert content["format"] == FORMAT
    assert list(content["guarantee"]) == [
        "kind", "epsilon", "delta", "rho", "epsilon_per_row", "neighbours", "unit",
        "rows_per_unit", "l",
    ]  # fmt: skip
    assert content["guarantee"]["delta"] == 0
    assert [event["kind"] for event in content["events"]] == ["unit-bound", "pegs"]


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("guarantee", "epsilon"), 0.01, "epsilon is stated as 0.01"),
        (("guarantee", "kind"), "pure", "kind"),
        (("guarantee", "rho"), None, "rho is stated as nothing"),
        (("guarantee", "delta"), 1e-3, "epsilon"),
        (("guarantee", "l"), 5, "l is stated"),
        (("guarantee", "unit"), "row", "unit"),
        (("guarantee", "rows_per_unit"), 1, "rows_per_unit"),
        (("guarantee", "epsilon_per_row"), 0.001, "epsilon_per_row"),
        (("events", 1, "rows"), 100, "epsilon"),
        (("events", 1, "alpha_numerator"), 9, "epsilon"),
        (
            ("events", 1, "kind"),
            "marvel",
            "kind is stated as approximate, but the events give none",
        ),
        (("not_covered",), ["nothing to see"], "no event supports"),
    ],
)
def test_tampering_is_named(path: tuple[str | int, ...], value: Any, named: str) -> None:
    found = verify(changed(path, value))
    assert any(named in line for line in found), found


def test_a_hidden_not_private_line_is_named() -> None:
    ledger = example().add(NotPrivate.because("seeded"))
    found = verify(changed(("not_covered",), [], ledger))
    assert len(found) == 1
    assert "not_covered lacks" in found[0]


def test_reading_recomputes_the_guarantee() -> None:
    read = Ledger.from_json(changed(("guarantee", "epsilon"), 1e-9))
    assert read.epsilon == example().epsilon


def counted(**changes: Any) -> dict[str, Any]:
    event = {"kind": "noisy-counts", "mechanism": "discrete-laplace", "purpose": "block"}
    return event | {"scale_numerator": 1, "scale_denominator": 1, "cells": 1} | changes


HOSTILE = {
    "empty": "",
    "truncated": example().to_json()[:-20],
    "no object": "[1, 2]",
    "bytes": b"\xff\xfe\x00\xd8",
    "nested": "[" * 100_000,
    "nested object": '{"a":' * 5000,
    "nested event": changed(("events",), [{"kind": "x", "deep": json.loads("[" * 60 + "]" * 60)}]),
    "not a number": changed(("guarantee", "epsilon"), math.nan),
    "infinite": changed(("guarantee", "epsilon"), 0.5).replace("0.5", "1e999"),
    "minus infinity": changed(("guarantee", "epsilon"), -math.inf),
    "huge integer": changed(("events", 1, "rows"), 7).replace('"rows": 7', '"rows": ' + "9" * 5000),
    "large integer": changed(("events", 1, "rows"), 2**300),
    "negative count": changed(("events", 1, "rows"), -5),
    "zero count": changed(("events", 1, "alpha_numerator"), 0),
    "fraction": changed(("events", 1, "rows"), 1.5),
    "text for number": changed(("events", 1, "rows"), "12"),
    "truth for number": changed(("events", 1, "rows"), True),
    "nothing for number": changed(("events", 1, "rows"), None),
    "unknown field": changed(("events", 1, "discount"), 1),
    "event no object": changed(("events", 1), 3),
    "event without kind": changed(("events", 1), {}),
    "kind no text": changed(("events", 1, "kind"), 7),
    "events no list": changed(("events",), {}),
    "guarantee no object": changed(("guarantee",), None),
    "guarantee kind": changed(("guarantee", "kind"), "perfect"),
    "negative delta": changed(("guarantee", "delta"), -1e-9),
    "large delta": changed(("guarantee", "delta"), 2),
    "unknown key": changed(("remark",), "x"),
    "newer": changed(("format",), FORMAT + 1),
    "no format": changed(("format",), None),
    "format truth": changed(("format",), True),
    "assumption": changed(("assumptions",), [{"code": 1}]),
    "terminal escape": changed(("not_covered",), ["\x1b[2J"]),
    "lone surrogate": changed(("not_covered",), ["x"]).replace('"x"', '"\\ud800"'),
    "key twice": example().to_json().replace('"format": 2,', '"format": 2, "format": 2,'),
    "programs no list": changed(("programs",), {"version": "1"}),
    "program no object": changed(("programs",), ["1"]),
    "program without version": changed(("programs",), [{"commit": "0" * 40}]),
    "version empty": changed(("programs",), [{"version": ""}]),
    "version long": changed(("programs",), [{"version": "1" * 5000}]),
    "commit no commit": changed(("programs",), [{"version": "1", "commit": "main"}]),
    "program with more": changed(("programs",), [{"version": "1", "host": "x"}]),
    "levels without features": changed(("events",), [counted(levels=[2])]),
    "levels no number": changed(("events",), [counted(features=["a"], levels=["2"])]),
    "levels zero": changed(("events",), [counted(features=["a"], levels=[0])]),
    "no cells": changed(("events",), [counted(table_cells=0)]),
    "features no list": changed(("events",), [counted(features="a")]),
    "feature no text": changed(("events",), [counted(features=[1])]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_file_ends_in_one_clear_error(name: str) -> None:
    for read in (Ledger.from_json, verify):
        with pytest.raises(ModelError, match=r"^run1\.json: ") as caught:
            read(HOSTILE[name], source="run1.json")
        assert len(str(caught.value)) < 300
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_a_file_of_another_format_says_so(other: int) -> None:
    with pytest.raises(ModelError, match=f"format {other}, and this program reads format {FORMAT}"):
        Ledger.from_json(changed(("format",), other))


def test_unknown_events_survive_word_for_word() -> None:
    event = {"kind": "quantum", "qubits": [3, {"phase": 0.5}], "note": "ü"}
    text = changed(("events",), [event])
    read = Ledger.from_json(text)
    assert read.guarantee.kind == "none"
    assert json.loads(read.to_json())["events"] == [event]


def test_bytes_are_read_too() -> None:
    assert Ledger.from_json(example().to_json().encode()) == example()


# What an event is about prices nothing.


@settings(deadline=None, max_examples=100)
@given(st.lists(COVERED, min_size=1, max_size=4))
def test_what_events_are_about_costs_nothing(events: list[Any]) -> None:
    """Without the fields that say what an event is about, every figure is the same."""
    content = json.loads(Ledger(events, delta=1e-9).to_json())
    for event in content["events"]:
        if event["kind"] in ("noisy-counts", "selection"):
            for name in ("features", "levels", "table_cells", "candidates", "among", "chosen"):
                event.pop(name, None)
    text = json.dumps(content)
    assert verify(text) == []
    assert Ledger.from_json(text).guarantee == Ledger(events, delta=1e-9).guarantee


def test_events_take_lists_and_become_values() -> None:
    noise = NoisyCounts.laplace(1, cells=1, purpose="x", features=["a", "b"], levels=[2, 3])
    assert (noise.features, noise.levels, noise.table_cells) == (("a", "b"), (2, 3), None)
    choice = Selection.of(1, count=1, purpose="x", chosen=["a"])
    assert hash(choice) == hash(Selection.of(1, count=1, purpose="x", chosen=("a",)))
    with pytest.raises(ParameterError, match="one figure for each feature"):
        NoisyCounts.laplace(1, cells=1, purpose="x", features=("a",), levels=(2, 3))


def test_programs_are_kept_once_and_added_up() -> None:
    one, two = Program(version="1", commit="0" * 40), Program(version="2", commit="0" * 40)
    assert example().made_by(one).made_by(one, two).programs == (one, two)
    both = Ledger.combine([example().made_by(one), example().made_by(two, one), example()])
    assert both.programs == (one, two)
    assert "Made by pegsynth 1 (commit 0000000000), pegsynth 2 (commit" in both.statement()
    assert "Made by" not in example().statement()
    changed_source = Program(version="1", commit="0" * 40, changed=True)
    assert str(changed_source) == "pegsynth 1 (commit 0000000000, with changes)"
    assert str(Program(version="1")) == "pegsynth 1"
    assert json.loads(example().made_by(Program(version="1")).to_json())["programs"] == [
        {"version": "1"}
    ]
