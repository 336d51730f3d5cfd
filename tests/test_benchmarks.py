"""Every benchmark figure can be computed; its value is for `make bench` to judge."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from checks.bench.stages import STAGES, stage_of
from lanes import long_form
from spark_clusters import QUICK_JAVA
from system import is_installed

ROOT = Path(__file__).parent.parent


def bench(*arguments):
    command = [sys.executable, "-m", "checks.bench.run", *map(str, arguments)]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": QUICK_JAVA}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@long_form
@pytest.mark.slow(seconds=130)
def test_quick_form_computes_every_figure(tmp_path):
    done = bench("--quick", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "results.json").read_text())
    figures = saved["figures"]
    assert saved["quick"]
    assert all(math.isfinite(f["value"]) and f["load"] >= 0 for f in figures)
    # Nobody is inconsistent, and nothing else is 0.
    assert all(f["ours"] > 0 or "inconsistent people" in f["what"] for f in figures)
    assert all(f["what"] in done.stdout for f in figures)
    # One figure per promise that has a number; the others are reported without one.
    assert [f["asked"] for f in figures if f["asked"] is not None] == [
        *(1, 8, 8, 3, 0.05, 0.15, 0.8, 30, 5.5, 11, 11),
        *(3, 1, 10, 1, 60, 1),
        *(0.03, 0.005, 0, 0.009, 0, 60, 1),
        *(3, 1.5, 6, 1.5, 1, 1.5, 1 / 1.7, 1 / 1.7, 1.05, 1.05, 1.05, 1.1),
        *((4, 4, 4, 1.25, 1.25) if is_installed("openjdk-17-jre-headless") else ()),
    ]
    assert all(f["met"] == (f["value"] <= f["asked"]) for f in figures if f["asked"] is not None)


def test_some_figures_and_an_unknown_name(tmp_path):
    assert bench("--quick", "count", "--output", tmp_path).returncode == 0
    assert len(json.loads((tmp_path / "results.json").read_text())["figures"]) == 1
    refused = bench("no-such-figure")
    assert refused.returncode == 2
    assert "no-such-figure" in refused.stderr


@pytest.mark.slow(seconds=20)
def test_stages_of_a_command_add_up_to_its_time():
    command = [sys.executable, "-m", "checks.bench.stages", "--tables", "200k", "--scale", "0.005"]
    done = subprocess.run(
        [*command, "--commands", "synthesize"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if "| " in line]
    seconds = {name: float(busy) for name, busy, _ in rows[1:]}
    assert {"import", "fit"} <= set(seconds) <= {*STAGES, "all"}
    parts = sum(busy for name, busy in seconds.items() if name != "all")
    # Stages below half a hundredth are not printed, and all are rounded.
    assert seconds["all"] == pytest.approx(parts, abs=0.01 * len(STAGES))


def test_the_stage_of_a_stack_is_that_of_its_innermost_frame():
    """What draws, draws, whatever it calls; and imports are imports wherever they stand."""

    def stack(*files):
        frame = None
        for file in files:
            code = SimpleNamespace(co_filename=file, co_name="called")
            frame = SimpleNamespace(f_code=code, f_back=frame)
        return frame

    once = "pegsynth/methods/released"
    assert stage_of(stack("main.py", "pegsynth/cli/main.py")) == "other"
    assert stage_of(stack(f"{once}/_choosing.py", f"{once}/_joint_fit.py", "numpy.py")) == "fit"
    assert stage_of(stack(f"{once}/_draw.py", f"{once}/_joint_fit.py")) == "draw"
    assert stage_of(stack(f"{once}/_draw.py", "<frozen importlib>", "new.py")) == "import"
    assert (
        stage_of(stack("pegsynth/publishing/files.py", "pegsynth/tables/arrow_read.py")) == "read"
    )
