"""``MODEL.pegs.spent``: locked, written before the output, and refused when in doubt."""

import json
import os
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from checks.fuzz.containers import Parts, put_together, taken_apart, with_array, with_manifest
from checks.fuzz.trees import Raw
from command import check_refused, done, pegs, pegs_process
from pegsynth.errors import ModelError
from pegsynth.methods.session import Spent
from pegsynth.storage.model_file import load_model, read_manifest, save_model
from pegsynth.storage.spending import locked, read_spent, spent_path, write_spent
from small_release import small_schema, small_session, small_table, taken

TOTAL = ("--epsilon", 20, "--rows", 30)
CAPPED = ("--method", "pegs-capped", "--visits", 6, "--chains", 4, "--epsilon", 20)


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    small_table(300).write_csv(folder / "data.csv")
    small_schema().save(folder / "schema.toml")
    source = (folder / "data.csv", "--schema", folder / "schema.toml")
    for name, flags in {
        "pegs": (*TOTAL, "--method", "pegs"),
        "blocks": (*TOTAL, "--method", "pegs-rs"),
        "capped": CAPPED,
        "rowwise": ("--epsilon-per-row", 0.5),
        "free": (),
    }.items():
        done("fit", *source, *flags, "-o", folder / f"{name}.pegs")
    return folder


@pytest.fixture
def models(originals, tmp_path):
    for file in originals.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def record(model):
    return taken_apart(spent_path(model).read_bytes()).manifest


def counters(model):
    return read_spent(model, read_manifest(model).identity).counters


def sample(folder, name, rows, *flags, output="out.csv"):
    return pegs("sample", folder / f"{name}.pegs", "--rows", rows, "-o", folder / output, *flags)


# The record beside a model


def test_only_models_with_a_budget_have_a_record(models):
    assert spent_path(models / "m.pegs") == models / "m.pegs.spent"
    assert not spent_path(models / "free.pegs").exists()
    for name in ("pegs", "blocks", "capped", "rowwise"):
        path = spent_path(models / f"{name}.pegs")
        assert record(models / f"{name}.pegs")["rows"] == 0
        assert path.read_bytes().startswith(b"CONFIDENTIAL: goes with the model")
        assert path.stat().st_size < 10_000


def test_the_record_is_for_its_owner_only(originals):
    for name in ("pegs.pegs", "capped.pegs", "pegs.pegs.spent", "capped.pegs.spent"):
        assert (originals / name).stat().st_mode & 0o777 == 0o600


def test_what_is_written_is_what_is_read(tmp_path):
    lines = tuple(np.random.default_rng(i).integers(0, 9, 50).astype(np.uint32) for i in (1, 2))
    write_spent(tmp_path / "m.pegs", "identity", Spent(12, 3, counters=lines))
    found = read_spent(tmp_path / "m.pegs", "identity")
    assert (found.rows, found.blocks) == (12, 3)
    assert all(np.array_equal(a, b) for a, b in zip(found.counters, lines, strict=True))
    found.counters[0][0] += 1  # not a read-only view of the file


# Spending


def test_rows_add_up_over_commands_until_the_budget_is_gone(models):
    for rows, spent in ((20, 20), (7, 27)):
        assert sample(models, "pegs", rows).code == 0
        assert record(models / "pegs.pegs")["rows"] == spent
    before = spent_path(models / "pegs.pegs").read_bytes()
    (models / "out.csv").unlink()
    check_refused(sample(models, "pegs", 4), "covers 3 more rows", "4 were asked")
    assert spent_path(models / "pegs.pegs").read_bytes() == before
    assert not (models / "out.csv").exists()
    assert sample(models, "pegs", 3).code == 0
    check_refused(sample(models, "pegs", 1), "covers 0 more rows")


def test_blocks_add_up_over_commands(models):
    assert sample(models, "blocks", 1).code == 0
    assert sample(models, "blocks", 11).code == 0
    assert (record(models / "blocks.pegs")["rows"], record(models / "blocks.pegs")["blocks"]) == (
        12,
        3,
    )
    check_refused(sample(models, "blocks", 1), "covers 0 more rows")


@pytest.mark.parametrize("rows", [0, -5, -1000])
@pytest.mark.parametrize("name", ["pegs", "blocks", "capped", "rowwise"])
def test_no_command_gives_budget_back(models, name, rows):
    before = spent_path(models / f"{name}.pegs").read_bytes()
    check_refused(sample(models, name, rows), "rows", "at least 1")
    assert spent_path(models / f"{name}.pegs").read_bytes() == before


def test_a_budget_of_its_own_takes_no_other(models):
    for flags in (("--epsilon", 1), ("--alpha", 1), ("--delta", 1e-9)):
        check_refused(sample(models, "pegs", 5, *flags), "budget of its own")


def test_a_price_per_row_grows_with_all_rows_ever_drawn(models):
    found = []
    for _ in range(3):
        assert sample(models, "rowwise", 10).code == 0
        ledger = json.loads((models / "out.csv.privacy.json").read_text())
        found.append(ledger["guarantee"]["epsilon"])
    assert found == [pytest.approx(5 * times, rel=1e-4) for times in (1, 2, 3)]


def test_visit_counters_go_on_after_a_reload(models):
    model = models / "capped.pegs"
    before = np.zeros_like(counters(model)[0], dtype=np.int64)
    for rows in (5, 40, 400):
        assert sample(models, "capped", rows).code == 0
        now = np.sum(counters(model), axis=0, dtype=np.int64)
        assert (now >= before).all()
        assert now.sum() > before.sum() or now.max() == 6
        assert now.max() <= 6
        before = now
    full = [np.full_like(line, 6) for line in counters(model)]
    identity = read_manifest(model).identity
    write_spent(model, identity, Spent(445, 45, counters=tuple(full)))
    assert sample(models, "capped", 100).code == 0
    assert all(np.array_equal(line, 6 + 0 * line) for line in counters(model))


def test_a_reload_continues_exactly_where_the_session_stopped(tmp_path):
    """Seeded: one session that draws twice, and two sessions with a file in between."""
    options = {"method": "pegs-capped", "visits": 5, "alpha": 0.1, "rows": 50}
    whole = small_session(**options)
    taken(whole, 50)
    first = small_session(**options)
    taken(first, 50)
    write_spent(tmp_path / "m", "x", first.spent)
    again = small_session(**options, spent=read_spent(tmp_path / "m", "x"), seed=9)
    fresh = small_session(**options, seed=9)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(whole.spent.counters, again.spent.counters, strict=True)
    )
    assert not np.array_equal(taken(again, 50)[0], taken(fresh, 50)[0])


def test_a_trace_spends_a_row(models):
    for name in ("pegs", "blocks", "capped", "rowwise"):
        outcome = done("trace", models / f"{name}.pegs")
        assert "seed" in outcome.out
        assert record(models / f"{name}.pegs")["rows"] == 1
    assert record(models / "blocks.pegs")["blocks"] == 1
    first, *others = counters(models / "capped.pegs")
    assert first.sum() == 3
    assert not any(line.any() for line in others)
    for _ in range(12):
        done("trace", models / "capped.pegs")
    first, *others = counters(models / "capped.pegs")
    assert first.max() <= 2  # what the first of four chains owns of six visits
    assert not any(line.any() for line in others)
    assert sample(models, "pegs", 29).code == 0
    check_refused(pegs("trace", models / "pegs.pegs"), "covers 0 more rows")


# Written first


@pytest.mark.parametrize("name", ["pegs", "blocks", "capped", "rowwise"])
def test_the_record_is_written_before_the_output_becomes_visible(models, name, monkeypatch):
    rename = os.replace
    seen = []

    def failing(source, target, *rest, **options):
        seen.append(os.path.basename(target))
        if str(target).endswith("out.csv"):
            raise OSError(28, "No space left on device", str(source))
        return rename(source, target, *rest, **options)

    monkeypatch.setattr(os, "replace", failing)
    check_refused(sample(models, name, 10), "out.csv")
    monkeypatch.undo()
    assert not (models / "out.csv").exists()
    assert seen == [f"{name}.pegs.spent", "out.csv.privacy.json", "out.csv"]
    assert record(models / f"{name}.pegs")["rows"] == 10


@pytest.mark.parametrize("name", ["pegs", "capped"])
def test_no_output_without_a_record(models, name, monkeypatch):
    rename = os.replace

    def failing(source, target, *rest, **options):
        if str(target).endswith(".spent"):
            raise OSError(28, "No space left on device", str(source))
        return rename(source, target, *rest, **options)

    before = spent_path(models / f"{name}.pegs").read_bytes()
    monkeypatch.setattr(os, "replace", failing)
    check_refused(sample(models, name, 10))
    check_refused(pegs("trace", models / f"{name}.pegs"))
    monkeypatch.undo()
    assert not (models / "out.csv").exists()
    assert not (models / "out.csv.privacy.json").exists()
    assert spent_path(models / f"{name}.pegs").read_bytes() == before


def test_no_model_without_a_record(originals, tmp_path, monkeypatch):
    model = load_model(originals / "pegs.pegs")
    rename = os.replace

    def failing(source, target, *rest, **options):
        if not str(target).endswith(".spent"):
            raise OSError(28, "No space left on device", str(source))
        return rename(source, target, *rest, **options)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(Exception, match="disk is full"):
        save_model(model, tmp_path / "m.pegs")
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["m.pegs.spent"]


# Two at once


def test_two_processes_cannot_spend_the_same_rows(models):
    """Three commands ask for 15 of 30 rows at the same time: two get them."""

    def run(number):
        paths = ("-o", models / f"out{number}.csv")
        return pegs_process("sample", models / "pegs.pegs", "--rows", 15, *paths)

    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(run, range(3)))
    assert sorted(outcome.code for outcome in outcomes) == [0, 0, 2]
    assert record(models / "pegs.pegs")["rows"] == 30
    assert len(list(models.glob("out?.csv"))) == 2
    for outcome in outcomes:
        if outcome.code:
            check_refused(outcome, "covers 0 more rows")


def test_a_lock_is_held_by_one_process_and_waited_for(models):
    script = (
        "import sys; from pegsynth.storage.spending import locked\n"
        "with locked(sys.argv[1]): print('mine', flush=True)"
    )
    with locked(models / "pegs.pegs"):
        other = subprocess.Popen(
            [sys.executable, "-c", script, models / "pegs.pegs"], stdout=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=2)
    out, _ = other.communicate(timeout=60)
    assert out == b"mine\n"


# Refused when in doubt


def test_a_budgeted_model_without_its_record(models):
    spent_path(models / "pegs.pegs").unlink()
    check_refused(sample(models, "pegs", 5), "pegs.pegs.spent", "missing", "restore")
    check_refused(pegs("trace", models / "pegs.pegs"), "missing")


def test_the_record_of_another_model(models):
    other = spent_path(models / "blocks.pegs").read_bytes()
    spent_path(models / "pegs.pegs").write_bytes(other)
    check_refused(sample(models, "pegs", 5), "another model")


def test_a_renamed_model_needs_its_record(models):
    (models / "pegs.pegs").rename(models / "new.pegs")
    check_refused(sample(models, "new", 5), "new.pegs.spent", "missing")


def edited(**changes):
    def edit(content):
        parts = taken_apart(content)
        return put_together(with_manifest(parts, {**parts.manifest, **changes}))

    return edit


def header(**changes):
    def edit(content):
        parts = taken_apart(content)
        return put_together(replace(parts, header={**parts.header, **changes}))

    return edit


FIRST = "counters of chain 0"


def array(**entry):
    """Change what is said of the first counters; their bytes stay as they are, unpacked."""

    def edit(content):
        parts = taken_apart(content)
        return put_together(with_array(parts, FIRST, parts.plain(FIRST), **entry))

    return edit


def body(change, *, packed=True):
    """Change the stored bytes of the first counters."""

    def edit(content):
        parts = taken_apart(content)
        bytes_ = change(zlib.compress(parts.plain(FIRST)))
        return put_together(with_array(parts, FIRST, bytes_, packed=packed))

    return edit


def chains(change):
    def edit(content):
        parts = taken_apart(content)
        kept = change(list(zip(parts.header["arrays"], parts.bodies, strict=True)))
        arrays = [{**entry, "name": f"counters of chain {n}"} for n, (entry, _) in enumerate(kept)]
        bodies = [each for _, each in kept]
        return put_together(Parts(parts.notice, {**parts.header, "arrays": arrays}, bodies))

    return edit


def of_length(length):
    def edit(content):
        parts = taken_apart(content)
        for chain in range(4):
            name, entry = f"counters of chain {chain}", {"dtype": "<u4", "shape": [length]}
            parts = with_array(parts, name, bytes(4 * length), **entry)
        return put_together(parts)

    return edit


def flipped(line):
    return line[:-6] + bytes([line[-6] ^ 0x10]) + line[-5:]


DAMAGE = {
    "empty": lambda text: b"",
    "truncated": lambda text: text[: len(text) // 2],
    "without its last byte": lambda text: text[:-1],
    "with a byte more": lambda text: text + b"\n",
    "a flipped bit": lambda text: text[:300] + bytes([text[300] ^ 1]) + text[301:],
    "not ours": lambda text: b"PAR1" + bytes(range(256)),
    "a list": lambda text: b"[]",
    "nested": lambda text: b"[" * 100_000,
    "a notice alone": lambda text: text.split(b"\n")[0] + b"\n",
    "nested inside": edited(rows=Raw("[" * 100_000)),
    "negative rows": edited(rows=-5),
    "negative blocks": edited(blocks=-5),
    "rows as text": edited(rows="5"),
    "rows as a fraction": edited(rows=1.5),
    "rows as a huge number": edited(rows=Raw("1" * 5000)),
    "no rows": lambda text: edited()(text.replace(b'"rows"', b'"line"')),
    "further field": edited(more=1),
    "of another kind": header(kind="model"),
    "no arrays": header(arrays=None),
    "huge counters": array(shape=[1 << 62]),
    "huge counters, packed": array(shape=[1 << 40], packed=True),
    "counters below zero": array(shape=[-20]),
    "counters of no size": array(shape=[0, 1 << 62]),
    "counters as a table": array(shape=[4, 5]),
    "counters as fractions": array(dtype="<f4"),
    "counters as objects": array(dtype="|O"),
    "counters too long": array(shape=[21]),
    "counters under another name": array(name="counters"),
    "counters there twice": array(name="counters of chain 1"),
    "not compressed": body(lambda line: b"abcde"),
    "a stream without its end": body(lambda line: line[:-4]),
    "a stream and more": body(lambda line: line + b"more"),
    "a flipped bit in a stream": body(flipped),
    "a bomb": body(lambda line: zlib.compress(bytes(1 << 26))),
    "no counters": chains(lambda lines: []),
    "a chain too few": chains(lambda lines: lines[1:]),
    "a chain too many": chains(lambda lines: [*lines, lines[0]]),
    "of another size": of_length(3),
    "newer": header(format=99),
    "of a newer container": header(pegsynth=99),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_records(models, how):
    path = spent_path(models / "capped.pegs")
    damaged = DAMAGE[how](path.read_bytes())
    path.write_bytes(damaged)
    check_refused(sample(models, "capped", 5))
    assert path.read_bytes() == damaged
    assert not (models / "out.csv").exists()


def test_a_record_that_is_a_folder(models):
    path = spent_path(models / "pegs.pegs")
    path.unlink()
    path.mkdir()
    check_refused(sample(models, "pegs", 5), "damaged")


def test_a_lock_on_nothing(tmp_path):
    with pytest.raises(ModelError, match="cannot be opened"), locked(tmp_path / "no.pegs"):
        pass


# What is drawn is what is charged


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pegs", {"rows": 10**6}),
        ("pegs", {"sweeps": 5}),
        ("pegs", {"datasets": 9}),
        ("pegs", {"method": "pegs-rs"}),
        ("blocks", {"block_size": 1000}),
        ("blocks", {"rows": 10**6}),
        ("capped", {"visits": 10**6}),
        ("capped", {"visits": None}),
        ("capped", {"method": "pegs", "visits": None, "chains": None}),
    ],
)
def test_a_recipe_that_does_not_fit_its_price(models, name, change):
    """An edited manifest cannot draw more than its events say."""
    path = models / f"{name}.pegs"
    parts = taken_apart(path.read_bytes())
    parts.manifest["recipe"]["draw"] |= change
    path.write_bytes(put_together(parts))
    check_refused(sample(models, name, 5), "recipe")


def test_a_loaded_model_is_the_saved_one(models):
    for name in ("pegs", "blocks", "capped", "rowwise"):
        first = load_model(models / f"{name}.pegs")
        save_model(first, models / "again.pegs")
        again = load_model(models / "again.pegs")
        # Shares of the budget were used up when it was settled.
        assert first.plan == again.plan
        assert first.ledger == again.ledger
        assert first.content.blocks.spec == again.content.blocks.spec
    assert read_manifest(models / "again.pegs").identity != (
        read_manifest(models / "rowwise.pegs").identity
    )


@pytest.mark.parametrize(
    "flags",
    [
        ("contingency", "--epsilon", 20),
        ("marginal", "--epsilon", 20),
        ("bootstrap",),
        ("mi",),
        ("cart",),
    ],
)
def test_saved_models_of_every_other_method_can_be_sampled(models, flags):
    """Those without seed rows used to be refused as damaged."""
    source = (models / "data.csv", "--schema", models / "schema.toml", "--rows", 20)
    done("fit", *source, "--method", *flags, "-o", models / "other.pegs")
    assert sample(models, "other", 20).code == 0
    assert len((models / "out.csv").read_text().splitlines()) == 21


def test_a_seeded_draw_takes_the_guarantee_from_all_later_ones(models):
    kinds = []
    for flags in ((), ("--seed", 5), ()):
        assert sample(models, "pegs", 5, *flags).code == 0
        ledger = json.loads((models / "out.csv.privacy.json").read_text())
        kinds.append(ledger["guarantee"]["kind"])
    assert kinds == ["pure", "none", "none"]
