"""Add a row with categories that no other row has: nothing public about the output moves."""

import re

import polars as pl
import pytest

from command import pegs
from pegsynth.errors import BudgetError
from pegsynth.methods import get
from pegsynth.privacy import Budget
from small_release import LEVELS, small_schema, small_table

METHODS = {
    "pegs": ("--method", "pegs", "--epsilon", 5),
    "pegs, approximate": ("--method", "pegs", "--epsilon", 5, "--delta", 1e-9),
    "pegs per row": ("--method", "pegs", "--epsilon-per-row", 1),
    "pegs-rs": ("--method", "pegs-rs", "--epsilon", 5),
    "pegs-rs per row": ("--method", "pegs-rs", "--epsilon-per-row", 1),
    "pegs-capped": ("--method", "pegs-capped", "--epsilon", 5, "--delta", 1e-9),
    "alpha": ("--method", "pegs", "--alpha", 1),
    "l": ("--method", "pegs", "--l", 1.5),
    "marginal prior": ("--method", "pegs", "--epsilon", 5, "--prior", "marginal"),
}
RARE = {name: levels[-1] for name, levels in LEVELS.items()}


@pytest.fixture(scope="module", params=["row", "unit"])
def neighbours(tmp_path_factory, request):
    """Two folders: the same table without and with one row of categories of its own."""
    folders = []
    table = small_table(60)
    for name, frame in (("without", table), ("with", pl.concat([table, pl.DataFrame([RARE])]))):
        folder = tmp_path_factory.mktemp(f"{request.param}-{name}")
        if request.param == "unit":
            frame = frame.with_row_index("person").cast({"person": pl.String})
            frame = frame.select(*LEVELS, "person")
        frame.write_csv(folder / "data.csv")
        small_schema(rows_per_unit=2 if request.param == "unit" else 0).save(folder / "schema.toml")
        folders.append(folder)
    return folders


def run(folder, command, *flags):
    """Run in a folder of a neutral name; say everything that may be compared."""
    outcome = pegs(command, folder / "data.csv", "--schema", folder / "schema.toml", *flags)
    return tuple(str(part).replace(str(folder), "FOLDER") for part in vars(outcome).values())


def shape(folder):
    """Names, sizes that are public, types and ledgers of all files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name in ("data.csv", "schema.toml") or path.is_dir():
            continue
        found[name] = path.stat().st_mode
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
            found[name] = (table.schema, table.height)
        elif path.suffix == ".csv":
            table = pl.read_csv(path, infer_schema=False)
            found[name] = (table.columns, table.height)
        elif path.suffix in (".json", ".md", ".toml") and "internal" not in name:
            # Papers name the sums and sizes of the tables, whose rows are drawn anew.
            text = re.sub(r"\b[0-9a-f]{64}\b", "SUM", path.read_text())
            found[name] = re.sub(r'"(contentSize|dcat:byteSize|byteSize)": [^,\n]+', "SIZE", text)
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_synthesize(neighbours, method, output):
    said = []
    for folder in neighbours:
        for path in folder.glob("out*"):
            path.unlink()
        flags = (*METHODS[method], "--rows", 12, "-o", folder / output)
        said.append(run(folder, "synthesize", *flags))
    assert said[0] == said[1]
    assert said[0][0] == "0"
    shapes = [shape(folder) for folder in neighbours]
    assert shapes[0] == shapes[1]
    assert f"{output}.privacy.json" in shapes[0]


@pytest.mark.parametrize("method", ["pegs", "pegs-rs", "pegs-capped"])
def test_release_fit_sample_and_inspect(neighbours, method):
    # A private order and levels are paid for and may differ; what else is said may not.
    flags = (*METHODS[method], "--rows", 12, "--order", "public", "--prior", "marginal")
    said = []
    for folder in neighbours:
        lines = [run(folder, "release", *flags, "-o", folder / "made", "--force", "--public-only")]
        lines.append(run(folder, "fit", *flags, "-o", folder / "m.pegs"))
        for arguments in (
            ("sample", folder / "m.pegs", "--rows", 5, "-o", folder / "some.parquet"),
            ("inspect", folder / "m.pegs"),
            ("sample", folder / "m.pegs", "--rows", 10**6, "-o", folder / "more.csv"),
        ):
            if method == "pegs-capped" and 10**6 in arguments:
                continue  # has no limit
            outcome = pegs(*arguments)
            lines.append((outcome.code, outcome.out, outcome.err))
        said.append([re.sub(re.escape(str(folder)), "FOLDER", str(line)) for line in lines])
    assert said[0] == said[1]
    shapes = [shape(folder) for folder in neighbours]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    "flags",
    [
        ("--method", "pegs-capped", "--epsilon", 1, "--visits", 0),
        ("--epsilon", 1e-9),
        ("--method", "pegs", "--epsilon", 1, "--heads", 7),
        ("--epsilon-per-row", 1, "--order", "private"),
    ],
)
def test_refusals(neighbours, flags):
    said = [
        run(folder, "synthesize", *flags, "--rows", 10**9, "-o", folder / "never.csv")
        for folder in neighbours
    ]
    assert said[0] == said[1]
    assert said[0][0] == "2"


@pytest.mark.parametrize(("delta", "least"), [(None, 1e-6), (1e-9, 1e-8)])
def test_a_budget_too_small_for_choices_is_refused_before_anything_is_read(delta, least):
    """In the middle of a run noise would decide whether a choice is asked for, and refused."""
    method = get("pegs-once")
    assert method.settle(small_schema(), Budget(least, delta=delta), method.options())
    if delta is None:
        with pytest.raises(BudgetError, match="too small to choose"):
            method.settle(small_schema(), Budget(least / 10), method.options())
