"""What stands under the name of an output: kept if it is a person's, else replaced and told."""

import json

import pytest

import pegsynth.datasets
from command import check_refused, done, pegs, review, snapshot
from pegsynth.evaluation import Metrics
from pegsynth.publishing import fill_folder
from pegsynth.publishing.folder import is_release

PER_ROW = ("--epsilon-per-row", 1)
TOTAL = ("--epsilon", 5, "--delta", 1e-6)


def table(folder):
    return (folder / "data.csv", "--schema", folder / "schema.toml")


def release(folder, *extra, run=done):
    return run("release", *table(folder), "-o", folder / "run", "--rows", 5, *PER_ROW, *extra)


@pytest.fixture
def small_demo(monkeypatch):
    """The demo on few of its rows, and without measuring anything."""

    def write_internal(folder, *arguments, **options):
        (folder / "internal").mkdir()
        (folder / "internal" / "report.html").write_text("")
        nothing = Metrics(summary={}, records=())
        (folder / "internal" / "metrics.json").write_text(nothing.to_json())

    monkeypatch.setattr(fill_folder, "write_internal", write_internal)
    discharge = pegsynth.datasets.discharge
    monkeypatch.setattr(
        pegsynth.datasets, "discharge", lambda rows: discharge(max(rows // 20, 100))
    )


# Release folders


@pytest.mark.parametrize("extra", [(), ("--public-only",), ("--format", "parquet")])
def test_a_release_replaces_an_earlier_one_only_when_forced(folder, extra):
    release(folder, *extra)
    before = snapshot(folder)
    check_refused(release(folder, *extra, run=pegs), folder / "run", "--force")
    assert snapshot(folder) == before
    outcome = release(folder, "--force", "--public-only")
    note = "replaces an earlier release; if that was published, both add up."
    assert f"Note: {folder}/run {note}\n" in outcome.err
    assert {path.name for path in (folder / "run").iterdir()} == {"public"}


def test_an_empty_folder_is_replaced_when_forced(folder):
    (folder / "run").mkdir()
    check_refused(release(folder, run=pegs), folder / "run", "--force")
    assert "Note: " not in release(folder, "--force").err
    assert is_release(folder / "run")


@pytest.mark.parametrize(
    "mine", ["notes.txt", ".hidden", "figures/a.png", "public/mine.csv", "internal/x/report.html"]
)
def test_a_file_of_ones_own_is_never_lost(folder, mine):
    release(folder, "--public-only")
    (folder / "run" / mine).parent.mkdir(exist_ok=True, parents=True)
    (folder / "run" / mine).write_text("mine")
    before = snapshot(folder)
    for extra in ((), ("--force",)):
        outcome = release(folder, *extra, run=pegs)
        check_refused(outcome, folder / "run", "other things than a release", "choose another")
        assert "--force" not in outcome.err
    outcome = pegs("demo", "-o", folder / "run", "--rows", 10)
    check_refused(outcome, folder / "run", "other things than a release", "choose another")
    assert snapshot(folder) == before


def test_a_folder_that_never_was_a_release(folder):
    (folder / "run" / "public").mkdir(parents=True)
    (folder / "run" / "public" / "schema.toml").write_text("mine")
    before = snapshot(folder)
    check_refused(release(folder, "--force", run=pegs), folder / "run", "other things")
    assert snapshot(folder) == before


def test_a_folder_that_is_filled_meanwhile_is_kept(folder, monkeypatch):
    def busy(*arguments, **options):
        (folder / "run").mkdir()
        (folder / "run" / "mine").write_text("mine")
        return write_public(*arguments, **options)

    write_public = fill_folder.write_public
    monkeypatch.setattr(fill_folder, "write_public", busy)
    outcome = release(folder, "--force", "--public-only", run=pegs)
    check_refused(outcome, folder / "run", "other things")
    assert (folder / "run" / "mine").read_text() == "mine"
    assert not list(folder.glob(".pegs*"))


def test_a_demo_replaces_a_demo(tmp_path, small_demo):
    place = tmp_path / "demo"
    for rows in (20, 30):
        done("demo", "-o", place, "--rows", rows)
        assert len((place / "public" / "synthetic-1.csv").read_text().splitlines()) == rows + 1
    (place / "public" / "schema.toml").unlink()
    check_refused(pegs("demo", "-o", place), place, "no earlier demo", "-o")


def test_a_demo_replaces_nothing_else(folder):
    release(folder, "--public-only")
    before = snapshot(folder)
    outcome = pegs("demo", "-o", folder / "run")
    check_refused(outcome, folder / "run", "no earlier demo", "choose another with -o")
    check_refused(pegs("demo", "-o", folder / "data.csv"), folder / "data.csv")
    check_refused(pegs("demo", "-o", folder / "new", "--rows", 0), "--rows")
    assert snapshot(folder) == before


# Schemas


def test_a_reviewed_schema_is_kept(folder):
    before = snapshot(folder)
    outcome = pegs("schema", folder / "data.csv", "-o", folder / "schema.toml")
    check_refused(outcome, folder / "schema.toml", "reviewed", "another name", "--force")
    assert snapshot(folder) == before
    done("schema", folder / "data.csv", "-o", folder / "schema.toml", "--force")
    review(folder / "schema.toml")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("reviewed = true\nfeatures = 'to be mended'\n", True),
        ("\ufeffreviewed = true\n", True),
        ("reviewed = false\n", False),
        ("reviewed = 1\n", False),
        ("reviewed = true\nreviewed = ", False),
        ("", False),
        ("a = " + "[" * 100_000, False),
    ],
    ids=["invalid", "byte order mark", "unreviewed", "no flag", "no TOML", "empty", "deep"],
)
def test_what_counts_as_reviewed(folder, text, kept):
    (folder / "s.toml").write_text(text)
    outcome = pegs("schema", folder / "data.csv", "-o", folder / "s.toml")
    assert outcome.code == (2 if kept else 0)
    assert ((folder / "s.toml").read_text() == text) == kept


def test_a_draft_is_replaced(folder):
    for _ in range(2):
        done("schema", folder / "data.csv", "-o", folder / "draft.toml")
    (folder / "draft.toml").write_bytes(b"\xff\xfe")
    done("schema", folder / "data.csv", "-o", folder / "draft.toml")
    review(folder / "draft.toml")


# Models and ledgers


def notes(outcome):
    return [line for line in outcome.err.splitlines() if line.startswith("Note: ")]


def fit(folder, *extra):
    return done("fit", *table(folder), "--method", "pegs", "-o", folder / "b.pegs", *extra)


def test_a_model_from_which_rows_were_drawn(folder):
    budget = ("--rows", 20, *TOTAL)
    for _ in range(2):
        assert not notes(fit(folder, *budget))
    done("sample", folder / "b.pegs", "--rows", 5, "-o", folder / "one.csv")
    outcome = fit(folder, *budget)
    assert notes(outcome) == [
        f"Note: {folder}/b.pegs replaces a model from which rows were drawn; if they were "
        "published, both budgets add up (pegs inspect LEDGER LEDGER)."
    ]
    assert not notes(fit(folder, *budget))
    done("sample", folder / "b.pegs", "--rows", 5, "-o", folder / "two.csv")
    both = (folder / "one.csv.privacy.json", folder / "two.csv.privacy.json")
    assert "2 runs on the same table, taken together" in done("inspect", *both).out


@pytest.mark.parametrize("record", ["", "{}", None])
def test_a_record_that_says_nothing(folder, record):
    budget = ("--rows", 20, *TOTAL)
    fit(folder, *budget)
    done("sample", folder / "b.pegs", "--rows", 5, "-o", folder / "one.csv")
    if record is None:
        (folder / "b.pegs").unlink()
    else:
        (folder / "b.pegs.spent").write_text(record)
    assert not notes(fit(folder, *budget))


def test_the_ledger_of_an_earlier_table(folder):
    def synthesize(*extra):
        flags = ("-o", folder / "a.csv", "--rows", 5, *PER_ROW)
        return done("synthesize", *table(folder), *flags, *extra)

    ledger = folder / "a.csv.privacy.json"
    note = (
        f"Note: {ledger} replaces the ledger of an earlier table; if that was published, both "
        "add up."
    )
    assert not notes(synthesize())
    assert notes(synthesize()) == [note]
    (folder / "a.csv").unlink()
    assert notes(synthesize()) == [note]
    assert json.loads(ledger.read_text())["guarantee"]["epsilon"] == pytest.approx(5, rel=1e-6)
    ledger.write_text("{}")
    assert not notes(synthesize())
    assert not notes(synthesize("--ledger", folder / "other.json"))


def test_the_ledger_of_a_model_covers_its_earlier_tables(folder):
    def sample(model, *extra):
        flags = ("-o", folder / "a.csv", "--rows", 5)
        return done("sample", folder / model, *flags, *extra)

    fit(folder, "--rows", 20, *TOTAL)
    sample("b.pegs")
    ledger = folder / "a.csv.privacy.json"
    (note,) = notes(sample("b.pegs"))
    assert note == (
        f"Note: {ledger} replaces the ledger of an earlier table; if that was published and "
        "drawn from another model, both add up."
    )
    (note,) = notes(sample("m.pegs", *PER_ROW))
    assert note.endswith("; if that was published, both add up.")


def test_is_release_knows_what_a_release_holds(folder):
    release(folder, "--datasets", 11, "--public-only")
    run = folder / "run"
    assert is_release(run)
    (run / "internal").write_text("a file")
    assert not is_release(run)
    (run / "internal").unlink()
    (run / "public" / "SHA256SUMS").unlink()
    assert not is_release(run)
    assert not is_release(folder)
