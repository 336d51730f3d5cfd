"""What must work: odd values, the whole path, ledgers, models, help."""

import csv
import json
import re
import subprocess
import sys
from datetime import date

import numpy as np
import polars as pl
import pytest

from command import SECRET, check_refused, done, pegs, pegs_process, review
from pegsynth import Schema
from pegsynth.codec.codec import encode

PER_ROW = ("--epsilon-per-row", 1)
SEED = 987_654_321


def write_csv(path, header, rows):
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def drafted(folder, data="data.csv"):
    done("schema", folder / data, "--binning", "equal-width", "-o", folder / "draft.toml")
    return review(folder / "draft.toml")


def synthesize(folder, *extra, data="data.csv", schema="schema.toml", output="out.csv"):
    paths = (folder / data, "--schema", folder / schema, "-o", folder / output)
    return done("synthesize", *paths, *extra)


def guarantee(folder, output="out.csv"):
    return ledger(folder, output)["guarantee"]


def ledger(folder, output="out.csv"):
    return json.loads((folder / f"{output}.privacy.json").read_text())


# The path


@pytest.mark.parametrize("output", ["out.csv", "out.parquet", "out.arrow"])
def test_the_whole_path(folder, output):
    schema_file = drafted(folder)
    outcome = synthesize(folder, "--rows", 500, *PER_ROW, schema="draft.toml", output=output)
    assert outcome.out == ""
    assert outcome.err.startswith("Guarantee: epsilon = 500")
    schema = Schema.load(schema_file)
    assert schema.reviewed
    codes = encode(folder / output, schema)
    assert codes.shape == (500, 4)
    assert {path.suffix for path in folder.iterdir()} <= {".csv", ".toml", ".pegs", ".json"} | {
        ".parquet",
        ".arrow",
    }
    readers = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}
    frame = readers[output.split(".")[-1]](folder / output)
    assert frame.columns == ["a", "b", "c", "n"]
    assert frame.schema["n"] == pl.Float64
    assert frame["b"].null_count() > 0
    assert frame["n"].is_between(0, 1000).all()


def test_a_draft_is_confidential_and_unreviewed(folder):
    outcome = done("schema", folder / "data.csv", "-o", folder / "draft.toml")
    text = (folder / "draft.toml").read_text()
    assert "CONFIDENTIAL" in text.splitlines()[0]
    assert "\nreviewed = false\n" in text
    assert text.count("drafted_from_data = true") == 4
    assert (folder / "draft.toml").stat().st_mode & 0o777 == 0o600
    assert "reviewed = true" in outcome.err
    assert not any(value in outcome.err for value in ("=1+1", "x,"))


def test_drafting_names_no_rare_value_when_told_so(folder):
    rows = [["x", "p"]] * 50 + [["y", "q"]] * 50 + [[SECRET, "p"]] * 2
    write_csv(folder / "rare.csv", ["a", "b"], rows)
    outcome = done("schema", folder / "rare.csv", "-o", folder / "rare.toml", "--min-count", 5)
    assert SECRET not in (folder / "rare.toml").read_text() + outcome.err
    review(folder / "rare.toml")
    synthesize(folder, "--rows", 20, *PER_ROW, data="rare.csv", schema="rare.toml")
    assert SECRET not in (folder / "out.csv").read_text()


def test_an_earlier_output_is_replaced(folder):
    (folder / "out.csv").write_text("earlier")
    synthesize(folder, "--rows", 3, *PER_ROW)
    assert len((folder / "out.csv").read_text().splitlines()) == 4


def test_order_and_types_of_the_table_not_of_the_schema(folder):
    frame = pl.DataFrame(
        {
            "n": pl.Series([1, 2, 3, 4] * 30, dtype=pl.Int16),
            "flag": [True, False, None] * 40,
            "day": pl.Series(["2024-01-01", "2024-02-29"] * 60).str.to_date(),
            "a": pl.Series(["x", "y"] * 60, dtype=pl.Categorical),
            "f": pl.Series([0.5, 1.5] * 60, dtype=pl.Float32),
        }
    )
    frame.write_parquet(folder / "typed.parquet")
    drafted(folder, "typed.parquet")
    reordered = frame.select("a", "day", "n", "flag", "f")
    reordered.write_parquet(folder / "typed2.parquet")
    for data, like in (("typed.parquet", frame), ("typed2.parquet", reordered)):
        # Days have edges that are measured, which takes a budget for the whole release.
        extra = ("--rows", 300, "--epsilon", 20)
        synthesize(folder, *extra, data=data, schema="draft.toml", output="out.parquet")
        out = pl.read_parquet(folder / "out.parquet")
        assert out.columns == like.columns
        for name in ("n", "flag", "day", "f"):
            assert out.schema[name] == like.schema[name], name
        assert set(out["a"].cast(pl.String)) <= {"x", "y"}
        assert set(out["n"]) <= {1, 2, 3, 4}
        assert out["flag"].null_count() > 0
        assert out["day"].is_between(date(2023, 12, 1), date(2024, 3, 31)).mean() > 0.5
        assert out.height == 300


def test_globs(folder):
    for number in range(3):
        (folder / f"part-{number}.csv").write_bytes((folder / "data.csv").read_bytes())
    synthesize(folder, "--rows", 10, *PER_ROW, data="part-*.csv")
    assert encode(folder / "out.csv", Schema.load(folder / "schema.toml")).shape == (10, 4)


def test_labels(folder):
    synthesize(folder, "--rows", 200, *PER_ROW, "--decode", "labels")
    schema = Schema.load(folder / "schema.toml")
    frame = pl.read_csv(folder / "out.csv")
    assert set(frame["n"]) <= set(schema.features[3].labels)
    codes = encode(folder / "out.csv", schema)
    labels = np.array(schema.features[3].labels)[codes[:, 3]]
    assert labels.tolist() == frame["n"].to_list()


# Values


@pytest.mark.parametrize("missing", ["NaN", "NULL", '""', "", "  ", " NA ", "\t"])
def test_texts_that_mean_missing(folder, missing):
    lines = ["a,b"] + [f"{first},{second}" for first in "xy" for second in "pq"] * 20
    (folder / "m.csv").write_text("\n".join([*lines, f"{missing},p", f"x,{missing}"]) + "\n")
    (folder / "m.toml").write_text(
        """
        reviewed = true
        [[features]]
        name = "a"
        categories = ["x", "y"]
        missing = ["", "NA", "NaN", "NULL"]
        [[features]]
        name = "b"
        categories = ["p", "q"]
        missing = ["", "NA", "NaN", "NULL"]
        not_applicable = ["none"]
        """
    )
    codes = encode(folder / "m.csv", Schema.load(folder / "m.toml"))
    assert codes[-2:].tolist() == [[2, 0], [0, 3]]
    extra = ("--rows", 400, "--alpha", 5, "--seed", 1)
    synthesize(folder, *extra, data="m.csv", schema="m.toml")
    out = pl.read_csv(folder / "out.csv")
    assert out["a"].null_count() > 0
    assert {"none", None} <= set(out["b"])
    again = encode(folder / "out.csv", Schema.load(folder / "m.toml"))
    assert ((again[:, 0] == 2) == out["a"].is_null().to_numpy()).all()


ODD = [
    "a, b",
    'say "hi"',
    "two\nlines",
    "to\r\nhere",
    "😀🇨🇭",
    "  spaces  ",
    "'quoted'",
    "007",
    "\\",
    "#",
]
FORMULAS = ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "\rx", "-1", "+2.5", '="a,b"\n']


@pytest.mark.parametrize("values", [ODD, FORMULAS], ids=["odd", "formulas"])
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_odd_categories_come_back(folder, values, output):
    rows = [[value, "k" if number % 3 else "j"] for number, value in enumerate(values * 20)]
    write_csv(folder / "odd.csv", ["odd", "other"], rows)
    schema = Schema.load(drafted(folder, "odd.csv"))
    assert set(values) == set(schema.features[0].categories)
    extra = ("--rows", 2000, "--alpha", 1)
    synthesize(folder, *extra, data="odd.csv", schema="draft.toml", output=output)
    codes = encode(folder / output, schema)
    assert set(np.unique(codes[:, 0])) == set(range(len(values)))
    if output == "out.parquet":
        assert set(pl.read_parquet(folder / output)["odd"]) == set(values)
        return
    with (folder / output).open(newline="") as handle:
        cells = {row[0] for row in list(csv.reader(handle))[1:]}
    risky = [cell for cell in cells if cell[:1] in set("=+-@\t\r")]
    assert all(re.fullmatch(r"[+-]?[\d.]+", cell) for cell in risky)
    assert {cell.removeprefix("'") for cell in cells} == {v.removeprefix("'") for v in values}


def test_a_category_of_a_megabyte(folder):
    long = ("é😀" * 9 + ", ") * 20_000
    assert len(long.encode()) > 1_000_000
    write_csv(folder / "long.csv", ["a", "b"], [[long, "p"], ["short", "q"]] * 10)
    drafted(folder, "long.csv")
    extra = ("--rows", 12, "--alpha", 1, "--seed", 1)
    synthesize(folder, *extra, data="long.csv", schema="draft.toml")
    frame = pl.read_csv(folder / "out.csv")
    assert set(frame["a"]) == {long, "short"}
    done("fit", folder / "long.csv", "--schema", folder / "draft.toml", "-o", folder / "l.pegs")
    assert len(done("trace", folder / "l.pegs", "--alpha", 1).out) < 10_000


def test_one_category_and_one_row(folder):
    (folder / "one.csv").write_text("a,b\nx,p\n")
    (folder / "one.toml").write_text(
        'reviewed = true\n[[features]]\nname = "a"\ncategories = ["x"]\n'
        '[[features]]\nname = "b"\ncategories = ["p", "q"]\n'
    )
    for method in ("pegs", "pegs-rs"):
        extra = ("--rows", 50, *PER_ROW, "--method", method)
        synthesize(folder, *extra, data="one.csv", schema="one.toml")
        frame = pl.read_csv(folder / "out.csv")
        assert set(frame["a"]) == {"x"}
        assert set(frame["b"]) <= {"p", "q"}


def test_a_single_feature(folder):
    (folder / "one.csv").write_text('a\nx\n""\ny\n')
    (folder / "one.toml").write_text(
        'reviewed = true\n[[features]]\nname = "a"\ncategories = ["x", "y"]\nmissing = [""]\n'
    )
    synthesize(folder, "--rows", 100, *PER_ROW, data="one.csv", schema="one.toml")
    codes = encode(folder / "out.csv", Schema.load(folder / "one.toml"))
    assert codes.shape == (100, 1)
    assert set(np.unique(codes)) == {0, 1, 2}


def test_a_hundred_thousand_categories(folder):
    count = 100_000
    rows = [[f"c{number}", "pq"[number % 2]] for number in range(count)]
    write_csv(folder / "wide.csv", ["a", "b"], rows)
    listed = ", ".join(f'"c{number}"' for number in range(count))
    (folder / "wide.toml").write_text(
        f'reviewed = true\n[[features]]\nname = "a"\ncategories = [{listed}]\n'
        '[[features]]\nname = "b"\ncategories = ["p", "q"]\n'
    )
    extra = ("--rows", 1000, "--epsilon-per-row", 50)
    synthesize(folder, *extra, data="wide.csv", schema="wide.toml")
    codes = encode(folder / "out.csv", Schema.load(folder / "wide.toml"))
    assert len(np.unique(codes[:, 0])) > 500


def test_more_rows_than_a_chunk(folder):
    rows = 300_000
    synthesize(folder, "--rows", rows, *PER_ROW, output="out.parquet")
    assert pl.scan_parquet(folder / "out.parquet").select(pl.len()).collect().item() == rows
    assert guarantee(folder, "out.parquet")["epsilon"] == pytest.approx(rows, rel=1e-6)


def test_almost_unperturbed_draws_follow_the_data(folder):
    rows = [["x", "p"]] * 60 + [["y", "q"]] * 40
    write_csv(folder / "pair.csv", ["a", "b"], rows)
    drafted(folder, "pair.csv")
    extra = ("--rows", 500, "--alpha", 0, "--sweeps", 3)
    synthesize(folder, *extra, data="pair.csv", schema="draft.toml")
    pairs = set(pl.read_csv(folder / "out.csv").iter_rows())
    assert pairs == {("x", "p"), ("y", "q")}
    assert guarantee(folder)["kind"] == "none"


# Seeds


def test_seeded_runs_are_equal_and_others_differ(folder):
    def run(*extra):
        synthesize(folder, "--rows", 200, *PER_ROW, *extra)
        return (folder / "out.csv").read_bytes()

    assert run("--seed", 7) == run("--seed", 7, "--threads", 1) == run("--seed", 7, "--threads", 2)
    assert run("--seed", 7) != run("--seed", 8)
    assert run() != run()


# Ledgers


def test_ledger_of_rows(folder):
    synthesize(folder, "--rows", 40, "--epsilon-per-row", 0.5)
    stated = guarantee(folder)
    assert stated["kind"] == "pure"
    assert stated["delta"] == 0
    assert stated["epsilon"] == pytest.approx(20, rel=1e-6)
    assert stated["epsilon"] <= 20
    assert stated["epsilon_per_row"] == pytest.approx(0.5, rel=1e-6)
    assert (stated["neighbours"], stated["unit"]) == ("add-remove", "row")
    assert ledger(folder)["not_covered"] == []
    assert [a["code"] for a in ledger(folder)["assumptions"]] == [
        "reviewed-schema",
        "unlisted-values",
        "feature-order",
        "public-options",
    ]


@pytest.mark.parametrize(("rows", "blocks"), [(10, 1), (11, 2), (40, 4), (41, 5)])
def test_ledger_of_blocks(folder, rows, blocks):
    extra = ("--method", "pegs-rs", "--block-size", 10, "--epsilon-per-row", 0.5)
    synthesize(folder, "--rows", rows, *extra)
    stated = guarantee(folder)
    assert stated["kind"] == "pure"
    assert stated["epsilon"] == pytest.approx(10 * blocks * 0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("extra", "kind"),
    [(("--epsilon", 2), "pure"), (("--epsilon", 2, "--delta", 1e-6), "approximate")],
)
@pytest.mark.parametrize("method", ["pegs", "pegs-rs"])
def test_ledger_of_a_total(folder, extra, kind, method):
    synthesize(folder, "--rows", 30, "--method", method, *extra)
    stated = guarantee(folder)
    assert stated["kind"] == kind
    assert 1.8 < stated["epsilon"] <= 2
    assert stated["delta"] == (1e-6 if kind == "approximate" else 0)


def test_ledger_of_diversity(folder):
    synthesize(folder, "--rows", 30, "--l", 1.5)
    stated = guarantee(folder)
    assert (stated["kind"], stated["l"], stated["epsilon"]) == ("l-diversity", 1.5, None)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (("--seed", SEED), "seed"),
        (("--order", "data"), "order"),
        (("--seed", SEED, "--order", "data"), "order"),
    ],
)
def test_what_leaves_no_guarantee(folder, extra, words):
    outcome = synthesize(folder, "--rows", 5, *PER_ROW, *extra)
    assert guarantee(folder)["kind"] == "none"
    assert any(words in line for line in ledger(folder)["not_covered"])
    assert outcome.err.startswith("Guarantee: none.")
    assert words in outcome.err
    assert str(SEED) not in (folder / "out.csv.privacy.json").read_text() + outcome.err


def test_an_unreviewed_schema_that_was_accepted(folder):
    done("schema", folder / "data.csv", "--binning", "equal-width", "-o", folder / "draft.toml")
    extra = ("--rows", 5, *PER_ROW, "--accept-unreviewed-schema")
    outcome = synthesize(folder, *extra, schema="draft.toml")
    assert guarantee(folder)["kind"] == "none"
    assert any("schema" in line for line in ledger(folder)["not_covered"])
    assert "schema" in outcome.err


def test_ledger_of_the_callers_choice(folder):
    synthesize(folder, "--rows", 5, *PER_ROW, "--ledger", folder / "mine.json")
    assert json.loads((folder / "mine.json").read_text())["guarantee"]["kind"] == "pure"
    assert not (folder / "out.csv.privacy.json").exists()


def test_no_ledger_depends_on_the_number_of_original_rows(folder):
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "more.csv").write_text("\n".join(lines + lines[1:]) + "\n")
    texts = []
    for data in ("data.csv", "more.csv"):
        synthesize(folder, "--rows", 20, *PER_ROW, data=data)
        texts.append((folder / "out.csv.privacy.json").read_bytes())
    assert texts[0] == texts[1]


# inspect


def test_inspect_adds_up(folder):
    for name in ("one.csv", "two.csv"):
        synthesize(folder, "--rows", 10, *PER_ROW, output=name)
    files = [folder / "one.csv.privacy.json", folder / "two.csv.privacy.json"]
    assert "epsilon = 10" in done("inspect", files[0]).out
    both = done("inspect", *files).out
    assert "2 runs" in both
    assert "epsilon = 20" in both


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["guarantee"].update(epsilon=0.1),
        lambda c: c["guarantee"].update(kind="approximate"),
        lambda c: c["guarantee"].update(epsilon_per_row=0.001),
        lambda c: c["events"][0].update(rows=99),
        lambda c: c["not_covered"].append("nothing to worry about"),
        lambda c: c["events"].clear(),
    ],
)
def test_inspect_finds_a_ledger_that_lies(folder, change):
    synthesize(folder, "--rows", 10, *PER_ROW)
    file = folder / "out.csv.privacy.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    outcome = pegs("inspect", file)
    assert outcome.code == 1
    assert f"pegs: {file}: " in outcome.err
    assert "Traceback" not in outcome.err


def test_inspect_schema_and_model(folder):
    out = done("inspect", folder / "schema.toml").out
    assert "4 features" in out
    assert "reviewed: true" in out
    out = done("inspect", folder / "m.pegs").out
    assert "CONFIDENTIAL" in out
    assert "300" not in out
    assert "300 rows" in done("inspect", folder / "m.pegs", "--confidential").out
    check_refused(pegs("inspect", folder / "m.pegs", folder / "schema.toml"))


def test_inspect_hides_an_order_read_off_the_data(folder):
    paths = (folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / "d.pegs")
    done("fit", *paths, "--order", "data")
    public = done("inspect", folder / "d.pegs").out
    assert "heads " not in public
    assert "order" in public
    assert "heads " in done("inspect", folder / "d.pegs", "--confidential").out


# Models


def test_a_model_is_private_to_its_owner(folder):
    paths = (folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / "n.pegs")
    done("fit", *paths)
    assert (folder / "n.pegs").stat().st_mode & 0o777 == 0o600


def test_sample_equals_synthesize(folder):
    for extra in (PER_ROW, ("--l", 1.5), ("--alpha", 0.5, "--method", "pegs-rs")):
        flags = ("--rows", 100, "--seed", 5, *extra)
        synthesize(folder, *flags)
        done("sample", folder / "m.pegs", "-o", folder / "sample.csv", *flags)
        assert (folder / "sample.csv").read_bytes() == (folder / "out.csv").read_bytes()
        ours, theirs = ledger(folder, "sample.csv"), ledger(folder)
        assert ours["guarantee"] == theirs["guarantee"]


def test_trace(folder):
    out = done("trace", folder / "m.pegs", *PER_ROW).out
    lines = out.splitlines()
    assert lines[0].split() == ["step", "a", "b", "c", "n"]
    assert lines[1].startswith("seed")
    assert [line.count("*") for line in lines[2:6]] == [2, 2, 2, 2]
    assert lines[6].startswith("final")
    assert "differs from the seed row: " in out
    assert "epsilon = 1 " in out
    first = done("trace", folder / "m.pegs", "--seed", 1, "--sweeps", 2).out
    assert first == done("trace", folder / "m.pegs", "--seed", 1, "--sweeps", 2).out
    assert sum(line.count("*") == 2 for line in first.splitlines()) == 8


def test_l_above_the_categories_names_the_feature(folder):
    paths = (folder / "m.pegs", "-o", folder / "out.csv", "--rows", 5)
    check_refused(pegs("sample", *paths, "--l", 2.5), "feature 'c'", "2 categories")
    check_refused(pegs("trace", folder / "m.pegs", "--l", 2.5), "feature 'c'")


# The release folder


def test_release_folder(folder):
    paths = (folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / "run")
    flags = ("--method", "pegs", *PER_ROW, "--datasets", 2)
    outcome = done("release", *paths, "--rows", 20, *flags)
    assert f"{folder}/run/public may be published" in outcome.out
    public, internal = folder / "run" / "public", folder / "run" / "internal"
    names = {path.name for path in public.iterdir()}
    assert names == {"synthetic-1.csv", "synthetic-2.csv", "schema.toml", "privacy.json"} | {
        "PRIVACY.md",
        "README.md",
        "HOW-TO-ANALYSE.md",
        "SHA256SUMS",
        "synthetic-1.csv-metadata.json",
        "synthetic-2.csv-metadata.json",
        *("croissant.json", "dcat.jsonld", "dp-registry.yaml", "release.intoto.json"),
        "QUALITY.json",
        "QUALITY.md",
        "QUALITY.html",
    }
    check = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=public, capture_output=True)
    assert check.returncode == 0
    assert check.stdout.count(b": OK\n") == len(names) - 1
    stated = json.loads((public / "privacy.json").read_text())["guarantee"]
    assert stated["epsilon"] == pytest.approx(40, rel=1e-6)
    assert "epsilon = 40" in (public / "PRIVACY.md").read_text()
    assert encode(public / "synthetic-2.csv", Schema.load(public / "schema.toml")).shape == (20, 4)
    assert (public / "synthetic-1.csv").read_bytes() != (public / "synthetic-2.csv").read_bytes()
    assert internal.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in internal.iterdir()} == {
        *("report.html", "metrics.json", "sign-off.html")
    }
    assert not [path for path in folder.iterdir() if path.name.startswith(".pegs")]


@pytest.mark.slow(seconds=20)
def test_demo(tmp_path):
    outcome = pegs_process("demo", "--rows", 200, cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    promised, close, opened = outcome.err.splitlines()[-3:]
    assert promised.startswith("Guarantee: epsilon = 1, delta = 1e-09")
    assert "of its rows would have to change" in close
    assert "report.html" in opened
    public = tmp_path / "pegs-demo" / "public"
    assert encode(public / "synthetic-1.csv", Schema.load(public / "schema.toml")).shape[0] == 200
    assert (tmp_path / "pegs-demo" / "internal" / "report.html").stat().st_size > 1000
    assert pegs_process("demo", "--rows", 100, cwd=tmp_path).code == 0


# Help


def commands():
    listed = done("--help").out.split("Commands:")[1]
    return re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE)


def test_help_says_every_flag_once():
    names = commands()
    assert {"demo", "schema", "synthesize", "release", "fit", "sample", "inspect", "trace"} <= {
        *names
    }
    for name in names:
        text = done(name, "--help").out
        flags = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)
        assert len(flags) == len(set(flags)) > 1, name
        for flag in flags:
            after = text.split(f"{flag} ", maxsplit=1)[1]
            assert len(after.split()) > 2, f"{name} {flag} has no words"


def test_help_imports_nothing_heavy():
    heavy = ("numba", "polars", "pyarrow", "pandas", "scipy", "opendp", "sklearn", "numpy")
    program = (
        "import sys\n"
        "from pegsynth.cli.main import main\n"
        "sys.argv = ['pegs', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"found = [name for name in {heavy!r} if name in sys.modules]\n"
        "sys.exit(f'imported {found}' if found else 0)\n"
    )
    for arguments in (["--help"], ["synthesize", "--help"]):
        run = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr


MOST_MODULES = {"--help": 400, "synthesize": 1100}
"""Modules of every kind after a command; what loads in vain takes the time of short commands."""
NEVER = ("scipy.special", "scipy.linalg", "cffi", "sklearn", "pandas")
OTHERS = ("methods.released.", "methods.baselines.", "evaluation.", "inference.")


def test_a_small_table_loads_what_it_needs(folder):
    """Counted, not timed: no SciPy, no library of C declarations, nothing of other methods."""
    schema = drafted(folder)
    program = (
        "import sys\n"
        "from pegsynth.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"found = [name for name in {NEVER!r} if name in sys.modules]\n"
        f"others = tuple('pegsynth.' + name for name in {OTHERS!r})\n"
        "found += [name for name in sys.modules if name.startswith(others)]\n"
        "print(len(sys.modules), *found, file=sys.stderr)\n"
    )
    small = ("synthesize", "data.csv", "--schema", schema, "--rows", 50, *PER_ROW, "-o", "out.csv")
    for arguments in (("--help",), small):
        run = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        count, *found = run.stderr.splitlines()[-1].split()
        assert found == []
        assert int(count) < MOST_MODULES[arguments[0]]
