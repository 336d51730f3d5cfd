"""The imputer cannot be handed anything but synthetic rows (R23)."""

import ast
import inspect
import tomllib
from pathlib import Path

import pegsynth.methods.completion
from pegsynth.methods.completion import completed_frames, fill

ROOT = Path(__file__).parent.parent.parent
HOME = Path(pegsynth.methods.completion.__file__)
ALLOWED = (
    *("codec.codec", "codec.encoding", "codec.date_decoding", "errors", "kernels.arrays"),
    *("methods.baselines.target_fits", "methods.baselines.trees"),
    *("progress", "random", "runtime", "schema"),
)
HANDED = {"codes", "frame", "schema", "stream", "imputations", "source", "strict", "threads"}


def imported(path):
    """Yield the modules of ours that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pegsynth"):
            yield node.module
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("pegsynth"))


def test_nothing_that_reads_a_table_is_imported():
    for module in imported(HOME):
        assert module.removeprefix("pegsynth.").startswith(ALLOWED), module
    names = {node.id for node in ast.walk(ast.parse(HOME.read_text())) if hasattr(node, "id")}
    assert not names & {"open", "encode", "encode_table", "open_table", "load_model"}


def test_the_import_rule_says_so():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rules = [
        c
        for c in contracts["contracts"]
        if c.get("source_modules") == ["pegsynth.methods.completion"]
    ]
    forbidden = {module for rule in rules for module in rule["forbidden_modules"]}
    assert {"pegsynth.tables", "pegsynth.methods.released", "pegsynth.pipeline"} <= forbidden


def test_no_argument_could_hold_a_source():
    """`source` is what messages call the table."""
    for function in (fill, completed_frames):
        assert set(inspect.signature(function).parameters) <= {*HANDED, "progress"}
