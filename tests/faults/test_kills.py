"""The short form of ``python -m checks.faults.run``, and proof that its checks can fail."""

import json
import signal
from dataclasses import replace

import polars as pl
import pytest

from checks.faults.booking import BookCampaign
from checks.faults.kill import Campaign, End
from checks.faults.places import NAME, leaks, make_place
from checks.faults.run import _some, moments, summary
from checks.faults.spending import SpendingCampaign
from checks.faults.works import WORKS, BrokenError
from command import done
from lanes import ALL, long_form, longer
from pegsynth.cli.signals import STOPPED

BY_NAME = {work.name: work for work in WORKS}


@pytest.fixture
def place(tmp_path):
    return make_place(tmp_path / "place", rows=800, parts=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "synthesize, unseeded, to a better promise",
        longer("fit with a budget, over another model"),
    ],
)
def test_a_command_that_is_killed_at_its_last_steps(place, name):
    """The steps that publish: record or ledger first, then the output."""
    campaign = Campaign(place, BY_NAME[name])
    steps = campaign.steps()
    cases = [campaign.kill_before(step) for step in (steps - 3, steps - 1)]
    assert [case.faults for case in cases] == [()] * 2, cases
    assert {case.state for case in cases} <= {"old", "new"}


@long_form
@pytest.mark.slow(seconds=30)
def test_a_release_that_is_killed_when_it_replaces_another(place):
    campaign = Campaign(place, BY_NAME["release --force"])
    steps = campaign.steps()
    cases = [campaign.kill_before(step) for step in (steps - 6, steps)]
    assert [case.faults for case in cases] == [()] * 2, cases


@pytest.mark.slow(seconds=20)
def test_a_budget_is_never_regained(place):
    campaign = SpendingCampaign(place)
    steps = campaign.steps()
    killed = range(max(steps - 4, 1), steps + 1) if ALL else (max(steps - 4, 1), steps)
    cases = [campaign.kill_before(step) for step in killed]
    if ALL:
        cases.append(campaign.kill_at(0.9 * campaign.seconds))
    assert [case.faults for case in cases] == [()] * len(cases), cases
    assert {case.state for case in cases} >= {"old"}


@pytest.mark.slow(seconds=40)
def test_a_budget_book_knows_of_everything_that_became_visible(place):
    campaign = BookCampaign(place)
    steps = campaign.steps()
    killed = (2, steps - 8, steps - 3, steps - 1, steps) if ALL else (2, steps - 3, steps)
    cases = [campaign.kill_before(step) for step in killed]
    if ALL:
        cases.append(campaign.kill_at(0.8 * campaign.seconds))
    assert [case.faults for case in cases] == [()] * len(cases), cases
    assert {case.state for case in cases} >= {"old", "new"}


@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize(
    ("how", "words"), [("late", "the book does not know"), longer("removed", "cannot be opened")]
)
def test_a_budget_book_that_is_kept_in_a_broken_way_is_caught(place, how, words):
    campaign = BookCampaign(place)
    campaign.work = replace(campaign.work, environment={"FAULT_BOOK": how})
    steps = campaign.steps()
    found = []
    for step in range(steps, steps - 4, -1):
        found += campaign.kill_before(step).faults
        if found or not (place.out / "t.book").exists():
            break
    assert any(words in fault for fault in found), found


@pytest.mark.slow
def test_a_table_beside_a_ledger_that_promises_too_much_is_caught(place):
    """The order that wrote the new ledger over the old one before the table was replaced."""
    work = BY_NAME["synthesize, unseeded, to a better promise"]
    campaign = Campaign(place, work)
    assert campaign._state() == "old"
    ledger = place.out / "t.parquet.privacy.json"
    content = json.loads(ledger.read_text())
    draws = next(event for event in content["events"] if event["kind"] == "pegs")
    draws["rows"] = 10
    from pegsynth.privacy import Ledger

    honest = Ledger.from_json(_claimed(content))
    ledger.write_text(honest.to_json())
    with pytest.raises(BrokenError, match="promises more"):
        campaign._state()
    (place.out / "t.parquet").unlink()
    with pytest.raises(BrokenError, match="gone"):
        campaign._state()


def _claimed(content):
    """Return a ledger's text with the claim that its events support."""
    from pegsynth.privacy.ledger import Ledger
    from pegsynth.privacy.privacy_json import event_from_builtins

    events = tuple(event_from_builtins(event) for event in content["events"])
    return Ledger(events).to_json()


def test_secrets_are_found_wherever_they_hide(place, tmp_path):
    data = pl.read_csv(place.folder / "data.csv")
    hidden = {
        "names.csv": data.select("person").write_csv,
        "names.parquet": data.select("person").write_parquet,
        "names.arrow": data.select("person").write_ipc,
        "amounts.csv": data.select("amount").write_csv,
        "amounts.parquet": data.select("amount").write_parquet,
    }
    for name, write in hidden.items():
        write(tmp_path / name)
        assert leaks(tmp_path / name, place), name
    assert NAME.encode() not in (tmp_path / "amounts.parquet").read_bytes()
    table = (place.folder / "data.csv", "--schema", place.folder / "schema.toml")
    done("fit", *table, "-o", tmp_path / "m.pegs")
    assert leaks(tmp_path / "m.pegs", place) == ["a confidential model"]
    done("fit", *table, "-o", tmp_path / "o.pegs", "--method", "pegs-once", "--epsilon", 1)
    assert leaks(tmp_path / "o.pegs", place) == []


def test_synthetic_tables_raise_no_alarm(place, tmp_path):
    """Amounts drawn anew: a hit or two would be chance, twenty are not."""
    from checks.faults.works import ROWS
    from pegsynth import synthesize

    release = synthesize(
        str(place.folder / "data.csv"),
        str(place.folder / "schema.toml"),
        method="pegs",
        epsilon=50.0,
        rows=ROWS,
    )
    release.frames[0].write_csv(tmp_path / "t.csv")
    release.frames[0].write_parquet(tmp_path / "t.parquet")
    assert leaks(tmp_path / "t.csv", place) == []
    assert leaks(tmp_path / "t.parquet", place) == []


def test_moments_and_steps_are_spread():
    import random

    found = list(moments(1000, 1.0, 5.0, random.Random(1)))
    assert 120 < sum(moment < 1.0 for moment in found) < 280
    assert max(found) > 5.0
    assert found == list(moments(1000, 1.0, 5.0, random.Random(1)))
    assert _some(7) == [1, 2, 3, 4, 5, 6, 7]
    assert _some(90)[-10:] == list(range(81, 91))
    assert len(_some(90)) == 20
    assert summary([]).count("\n") == 1


@pytest.mark.slow(seconds=10)
def test_a_command_that_is_stopped_tidies_up(place):
    campaign = Campaign(place, BY_NAME["synthesize, unseeded, to a better promise"])
    shares = {0.6: signal.SIGTERM, 0.8: signal.SIGINT}
    cases = [campaign.kill_at(share * campaign.seconds, number) for share, number in shares.items()]
    assert [case.faults for case in cases] == [()] * 2, cases


def test_ends_that_are_as_they_should_be():
    said = f"pegs: {STOPPED}\n"
    for end in (
        End(-9),
        End(0),
        End(0, signal.SIGTERM, "a note\n"),
        End(143, signal.SIGTERM, said),
        End(130, signal.SIGINT, said),
        End(130, signal.SIGINT, f"a note\n{said}", notes="a note\nanother\n"),
        End(1, signal.SIGINT, "Traceback", ready=False),
    ):
        assert end.faults == []
        assert not end.cut_short
    assert End(-15, signal.SIGTERM).cut_short


@pytest.mark.parametrize(
    "end",
    [
        End(1),
        End(143, signal.SIGTERM, ""),
        End(143, signal.SIGTERM, f"surprise\npegs: {STOPPED}\n", notes="a note\n"),
        End(143, signal.SIGTERM, f"pegs: {STOPPED}\na note\n", notes="a note\n"),
        End(143, signal.SIGTERM, f"pegs: {STOPPED}\nthread '<unnamed>' panicked at general.rs\n"),
        End(0, signal.SIGINT, "Exception ignored in: <module 'threading'>"),
        End(3, signal.SIGTERM, "pegs: internal error"),
        End(143, signal.SIGINT, f"pegs: {STOPPED}\n"),
    ],
)
def test_ends_that_are_not(end):
    assert end.faults
