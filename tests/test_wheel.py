"""The wheel: built, installed into a fresh environment, and its command tried."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pegsynth

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow(seconds=30)


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    run(*build, ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_what_is_inside(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "pegsynth/py.typed" in names
    source = ROOT / "src" / "pegsynth"
    for file in source.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert f"pegsynth/{file.relative_to(source)}" in names
    assert any(name.startswith("pegsynth/report/templates/") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
    if (ROOT / "LICENSE").exists():
        assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_same_source_gives_the_same_wheel(wheel, tmp_path):
    """Byte for byte, also from a copy whose files are younger."""
    copy = tmp_path / "copy"
    names = ("src", "README.md", "LICENSE", "pyproject.toml")
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.mkdir(exist_ok=True)
            shutil.copy(source, copy / name)
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path)
    run(*build, copy)
    (again,) = tmp_path.glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_installed_command(wheel, tmp_path):
    home = tmp_path / "fresh"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    # The dependencies are those already installed here: nothing is downloaded.
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(str(Path(np.__file__).parent.parent) + "\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    options = {"cwd": tmp_path, "env": environment}
    where = run(python, "-c", "import pegsynth; print(pegsynth.__file__)", **options)
    assert Path(where.strip()).is_relative_to(packages)
    version = run(python, "-c", "import pegsynth; print(pegsynth.__version__)", **options)
    assert version.strip() == pegsynth.__version__
    assert pegsynth.__version__ in wheel.name
    pegs = home / "bin" / "pegs"
    assert "Usage: pegs" in run(pegs, "--help", **options)
    (tmp_path / "data.csv").write_text("a,b\n" + "x,p\ny,q\n" * 20)
    run(pegs, "schema", "data.csv", "-o", "schema.toml", **options)
    text = (tmp_path / "schema.toml").read_text()
    (tmp_path / "schema.toml").write_text(text.replace("reviewed = false", "reviewed = true"))
    flags = ("--schema", "schema.toml", "--rows", "20", "--epsilon-per-row", "1")
    run(pegs, "release", "data.csv", *flags, "-o", "run", **options)
    assert (tmp_path / "run" / "internal" / "report.html").stat().st_size > 1000
