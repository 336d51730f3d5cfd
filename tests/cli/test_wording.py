"""What the commands say is true, and calls things by the names that the user typed."""

import pytest

from command import check_refused, done, pegs

PER_ROW = ("--epsilon-per-row", 1)
TOTAL = ("--epsilon", 5, "--delta", 1e-6)
ASSUMED = (
    "The number of original rows was not stated (--rows-in), so predicted errors are a guess: "
    "taken to be "
)


def table(folder, schema="schema.toml"):
    return (folder / "data.csv", "--schema", folder / schema)


def release(folder, *extra, schema="schema.toml"):
    outcome = done("release", *table(folder, schema), "-o", folder / "run", *extra)
    return outcome.out.replace(f"{folder}/", "")


# What may leave


@pytest.mark.parametrize("budget", [PER_ROW, ("--l", 1.5)])
def test_what_is_guaranteed_may_leave(folder, budget):
    said = release(folder, "--rows", 5, *budget)
    assert said == "run/public may be published; run/internal may not.\n"


def test_an_internal_folder_that_is_not_there_is_not_named(folder):
    said = release(folder, "--rows", 5, *PER_ROW, "--public-only")
    assert said == "run/public may be published.\n"


@pytest.mark.parametrize(
    "extra",
    [
        ("--rows", 5, "--method", "cart"),
        ("--rows", 5, *PER_ROW, "--seed", 1),
        ("--rows", 5, "--alpha", 0),
        ("--synthesize", "a"),
    ],
    ids=lambda extra: extra[-2],
)
def test_without_a_guarantee_somebody_decides(folder, extra):
    words = "run/public carries no guarantee; somebody has to decide whether it may be published."
    assert release(folder, *extra) == f"{words} run/internal may not.\n"
    assert release(folder, *extra, "--public-only", "--force") == f"{words}\n"


def test_with_an_unreviewed_schema_somebody_decides(folder):
    done("schema", folder / "data.csv", "--binning", "equal-width", "-o", folder / "draft.toml")
    extra = ("--rows", 5, *PER_ROW, "--accept-unreviewed-schema", "--public-only")
    assert "carries no guarantee" in release(folder, *extra, schema="draft.toml")
    assert "CONFIDENTIAL" in (folder / "run" / "public" / "schema.toml").read_text()


# What a choice rests on


def chosen(folder, command, *extra):
    names = {"release": "run", "fit": "b.pegs", "synthesize": "out.csv"}
    flags = ("-o", folder / names[command], "--method", "auto", *extra)
    return done(command, *table(folder), *flags).err


@pytest.mark.parametrize("command", ["release", "fit", "synthesize"])
def test_an_assumed_number_of_rows_is_said(folder, command):
    said = chosen(folder, command, "--rows", 20, *TOTAL)
    assert "Method: " in said
    assert f"\n{ASSUMED}20, as --rows.\n" in said


@pytest.mark.parametrize("command", ["release", "fit", "synthesize"])
@pytest.mark.parametrize("extra", [(*TOTAL, "--rows-in", 300), PER_ROW])
def test_where_nothing_is_assumed_nothing_is_said(folder, command, extra):
    said = chosen(folder, command, "--rows", 20, *extra)
    assert "Method: " in said
    assert ASSUMED not in said


def test_plan_says_it_in_the_same_words(folder):
    flags = ("--schema", folder / "schema.toml", "--rows", 20, *TOTAL)
    assert f"\n\n{ASSUMED}20, as --rows.\n\n" in done("plan", *flags).out
    assert ASSUMED not in done("plan", *flags, "--rows-in", 300).out


def test_fit_without_any_number_of_rows(folder):
    assert f"{ASSUMED}1, for want of --rows.\n" in chosen(folder, "fit", *TOTAL)


# Budgets of models


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("pegs", "Budget: epsilon = 5, delta = 1e-06 in total for at most 20 rows drawn from it."),
        (
            "pegs-rs",
            "Budget: epsilon = 5, delta = 1e-06 in total for at most 20 rows drawn from it.",
        ),
        (
            "pegs-capped",
            "Budget: epsilon = 5, delta = 1e-06 in total for any number of rows drawn from it.",
        ),
        ("pegs-once", "Guarantee: epsilon = 5, delta = 1e-06 in total."),
    ],
)
def test_fit_says_what_the_budget_is(folder, method, line):
    flags = ("-o", folder / "b.pegs", "--rows", 20, "--method", method, *TOTAL)
    assert done("fit", *table(folder), *flags).err.splitlines()[1] == line
    said = done("fit", *table(folder), *flags, "--seed", 1).err.splitlines()
    assert said[1] == "Guarantee: none."


def test_rows_of_fit_are_no_limit_for_every_method(folder):
    """What the help says: some methods give more rows than were stated."""
    assert "The most rows ever" not in done("fit", "--help").out
    for method, code in (("pegs", 2), ("pegs-rs", 2), ("pegs-capped", 0), ("pegs-once", 0)):
        flags = ("-o", folder / "b.pegs", "--rows", 20, "--method", method, *TOTAL)
        done("fit", *table(folder), *flags)
        outcome = pegs("sample", folder / "b.pegs", "--rows", 100, "-o", folder / "out.csv")
        assert outcome.code == code, method


# Refusals


def test_a_folder_is_not_a_missing_file(folder):
    release(folder, "--rows", 5, *PER_ROW)
    run = folder / "run"
    check_refused(pegs("inspect", run), run, "this is a folder", run / "public" / "privacy.json")
    check_refused(pegs("inspect", folder), folder, "this is a folder", "a model, a ledger or")
    for command in ("sample", "trace"):
        extra = ("--rows", 5, "-o", folder / "out.csv") if command == "sample" else ()
        check_refused(pegs(command, run, *extra, *PER_ROW), run, "this is a folder", "pegs fit")


@pytest.mark.parametrize(
    ("flag", "value"), [("--bins", 0), ("--bins", 10**6), ("--min-count", 0), ("--min-count", -1)]
)
def test_flags_of_a_draft(folder, flag, value):
    outcome = pegs("schema", folder / "data.csv", "-o", folder / "new.toml", flag, value)
    check_refused(outcome, f"pegs: {flag} must be ")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (("--epsilon-per-row", 0), "--epsilon-per-row must be"),
        (("--epsilon", 0), "--epsilon must be"),
        (("--l", 0), "--l must be"),
        (("--alpha", -1), "--alpha must be"),
        (
            (),
            "state exactly one of --epsilon (with or without --delta), --epsilon-per-row, --l and "
            "--alpha",
        ),
        ((*PER_ROW, "--alpha", 1), "--epsilon-per-row and --alpha cannot be stated together"),
        ((*PER_ROW, "--delta", 1e-6), "--delta requires --epsilon, the figure"),
        (
            ("--method", "pegs", "--epsilon", 1, "--l", 2),
            "--epsilon and --l cannot be stated together",
        ),
    ],
)
def test_budgets_are_called_by_their_flags(folder, budget, words):
    flags = ("-o", folder / "out.csv", "--rows", 5)
    outcome = pegs("synthesize", *table(folder), *flags, *budget)
    check_refused(outcome, words)
    assert "----" not in outcome.err


@pytest.mark.parametrize("command", ["synthesize", "fit", "release"])
def test_a_wrong_method_is_told_all_of_them(folder, command):
    flags = ("-o", folder / "new.csv", "--rows", 5, *PER_ROW, "--method", "magic")
    check_refused(pegs(command, *table(folder), *flags), "--method is one of auto, pegs, ")


def test_a_long_label_is_cut_visibly(folder):
    long = "a category with a rather long name"
    (folder / "long.csv").write_text("a,b\n" + f"{long},p\n{long},q\n" * 20)
    done("schema", folder / "long.csv", "-o", folder / "long.toml")
    paths = (folder / "long.csv", "--schema", folder / "long.toml", "-o", folder / "l.pegs")
    done("fit", *paths, "--accept-unreviewed-schema")
    out = done("trace", folder / "l.pegs", "--alpha", 1, "--accept-unreviewed-schema").out
    assert f"{long[:22]}..  " in out
    assert long[:23] not in out
