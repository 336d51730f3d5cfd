"""The wheel: built, installed into a fresh environment, and its command tried."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pegsynth
from lanes import made_once

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow(seconds=30)


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


COMMIT = "0123456789abcdef" * 2 + "01234567"


def built(source, folder, *, commit=None):
    """Build a wheel; nobody states a commit unless asked to."""
    environment = {k: v for k, v in os.environ.items() if k != "PEGSYNTH_COMMIT"}
    if commit:
        environment["PEGSYNTH_COMMIT"] = commit
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    run(*build, source, env=environment)
    (file,) = folder.glob("*.whl")
    return file


def copied(folder):
    """Copy what a wheel is built from, without its repository; the files are younger."""
    folder.mkdir()
    for name in ("src", "tools", "README.md", "LICENSE", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    (file,) = made_once(tmp_path_factory, "wheel", partial(built, ROOT)).glob("*.whl")
    return file


@pytest.fixture(scope="session")
def named_wheel(tmp_path_factory):
    """A wheel whose builder said which commit it is of."""
    build = partial(built, ROOT, commit=COMMIT)
    (file,) = made_once(tmp_path_factory, "named-wheel", build).glob("*.whl")
    return file


def test_what_is_inside(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "pegsynth/py.typed" in names
    source = ROOT / "src" / "pegsynth"
    for file in source.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert f"pegsynth/{file.relative_to(source)}" in names
    assert any(name.startswith("pegsynth/publishing/templates/") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "checks/", "studies/"))]
    if (ROOT / "LICENSE").exists():
        assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_same_source_gives_the_same_wheel(wheel, tmp_path):
    """Byte for byte, also from a copy whose files are younger, inside of a repository or not."""
    again = built(copied(tmp_path / "copy"), tmp_path)
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_a_wheel_names_its_commit_if_its_builder_does(wheel, named_wheel, tmp_path):
    inside = "pegsynth/_build.json"
    with zipfile.ZipFile(named_wheel) as archive, zipfile.ZipFile(wheel) as plain:
        assert json.loads(archive.read(inside)) == {"commit": COMMIT}
        assert set(archive.namelist()) - set(plain.namelist()) == {inside}
    again = built(copied(tmp_path / "copy"), tmp_path, commit=COMMIT)
    assert again.read_bytes() == named_wheel.read_bytes()


def test_a_commit_that_is_none_stops_the_build(tmp_path):
    with pytest.raises(AssertionError, match="PEGSYNTH_COMMIT must be"):
        built(ROOT, tmp_path, commit="main")


def installed(wheel, home):
    """Install a wheel into a fresh environment; return its Python and its packages."""
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    # The dependencies are those already installed here: nothing is downloaded.
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(str(Path(np.__file__).parent.parent) + "\n")
    return python, packages


ASK = "from pegsynth.privacy import this_program as p; print(p().version, p().commit or '-')"


@pytest.mark.parametrize("named", [False, True])
def test_what_is_installed_knows_its_commit_from_the_wheel_alone(
    named, wheel, named_wheel, tmp_path
):
    """Not from a repository that it happens to run in."""
    python, _ = installed(named_wheel if named else wheel, tmp_path / "fresh")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    told = run(python, "-c", ASK, cwd=ROOT, env=environment)
    assert told.split() == [pegsynth.__version__, COMMIT if named else "-"]


def test_the_installed_command(wheel, tmp_path):
    home = tmp_path / "fresh"
    python, packages = installed(wheel, home)
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
    ledger = json.loads((tmp_path / "run" / "public" / "privacy.json").read_text())
    assert ledger["programs"] == [{"version": pegsynth.__version__}]
