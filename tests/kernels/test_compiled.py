"""How kernels are compiled, what is said about it, and that nothing is compiled in vain."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pegsynth.cli import application
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.kernels.compiled import as_kernel, helper, kernel
from pegsynth.kernels.notice import compiling, when_compiling


def first_of(values):
    return values[0] + 1


def test_a_helper_may_be_called_from_python_and_from_kernels():
    called = helper(first_of)
    numbers = np.array([4.0, 1.0])
    assert called(numbers) == as_kernel(called)(numbers) == 5.0

    @kernel
    def twice(values):
        return called(values) + called(values)

    assert twice(numbers) == 10.0
    # Compiling it did not open a way in that has no code behind it.
    assert called(numbers) == 5.0


def test_compiling_is_told_once_and_loading_never():
    told = []
    when_compiling(lambda: told.append("compiling"))
    compiled = as_kernel(helper(first_of))
    assert not told
    compiled(np.ones(1))
    assert told == ["compiling"]
    compiled(np.ones(1))
    as_kernel(helper(first_of))(np.ones(1, dtype=np.int64))
    assert told == ["compiling"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_command_tells_it_on_a_terminal_only(monkeypatch, capsys, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "argv", ["pegs", "--version"])
    when_compiling(lambda: None)
    with pytest.raises(SystemExit):
        application.run()
    compiling()
    said = "Preparing compiled code, once: about 5 seconds.\n"
    assert capsys.readouterr().err == (said if terminal else "")


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize(
    ("flags", "compiled", "others"),
    [
        (
            ("pegs", "--epsilon-per-row", "1"),
            {"key_counts", "gibbs"},
            {"noise_draws", "pool_loops"},
        ),
        (("pegs-once", "--epsilon", "5"), {"noise_draws", "pool_loops"}, {"key_counts", "gibbs"}),
    ],
)
def test_a_first_command_compiles_what_its_method_uses(tmp_path, flags, compiled, others):
    """Each kernel once, and quietly in a pipe."""
    discharge(300, seed=1).write_csv(tmp_path / "stays.csv")
    discharge_schema().save(tmp_path / "schema.toml")
    cache = tmp_path / "cache"
    command = [sys.executable, "-m", "pegsynth.cli.main", "synthesize", "stays.csv"]
    command += ["--schema", "schema.toml", "--rows", "20", "-o", "out.csv", "--method", *flags]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "compil" not in done.stderr
    kernels = [path.name.split("-")[0] for path in cache.rglob("*.nbc")]
    modules = {name.split(".")[0] for name in kernels}
    assert compiled <= modules
    assert not others & modules
    assert len(kernels) == len(set(kernels))
