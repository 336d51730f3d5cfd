"""What pegsynth is made of: pinned, listed, and under licences that bind nobody."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


materials = tool("bill_of_materials")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKED = materials.locked((ROOT / "requirements" / "lock.txt").read_text())
EVERYTHING = materials.locked((ROOT / "requirements" / "lock-dev.txt").read_text())
LOWEST = materials.locked((ROOT / "requirements" / "lowest.txt").read_text())


def named():
    """Every package that we name ourselves."""
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("requirement", named(), ids=str)
def test_every_requirement_is_locked_within_its_bounds(requirement):
    version, hashes = EVERYTHING[canonicalize_name(requirement.name)]
    assert Version(version) in requirement.specifier
    assert hashes


def test_the_product_is_locked_to_the_versions_that_are_tested():
    """What `make demo` installs is part of what `make test` installs, hash by hash."""
    assert LOCKED.items() <= EVERYTHING.items()


def test_the_product_needs_no_tool_of_ours():
    """`make demo` installs what pegsynth imports, and what installs a checkout."""
    wanted = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    extras = {canonicalize_name(each.name) for each in named()} - wanted
    assert wanted <= LOCKED.keys()
    assert extras & LOCKED.keys() <= {"editables", "hatchling", "packaging"}


def test_nothing_is_imported_that_is_not_installed():
    """Every import of the package is the product's own, or an extra's that is asked for."""
    extras = PROJECT["optional-dependencies"]
    optional = [Requirement(line).name for name in extras if name != "dev" for line in extras[name]]
    allowed = {*LOCKED, *map(canonicalize_name, optional), "py4j", "adbc-driver-manager"}
    owners = packages_distributions()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in {each.partition(".")[0] for each in names} - sys.stdlib_module_names:
                found = {canonicalize_name(each) for each in owners.get(name, [name])}
                assert found & {*allowed, "pegsynth"}, f"{file.name} imports {name}"


@pytest.mark.slow(seconds=15)
def test_a_release_and_its_report_need_no_extra(tmp_path):
    """Everything that `make demo` does not install cannot be imported here."""
    missing = [
        name
        for name, owners in packages_distributions().items()
        if not {canonicalize_name(each) for each in owners} & {*LOCKED, "pegsynth"}
    ]
    assert {"pandas", "statsmodels", "pyspark"} <= set(missing)
    program = (
        f"import sys\nsys.modules.update(dict.fromkeys({missing!r}))\n"
        "from pegsynth.cli.main import main\nmain()\n"
    )
    (tmp_path / "data.csv").write_text("a,b\n" + "x,p\ny,q\n" * 40)
    budget = ("--rows", "40", "--epsilon", "5")
    for arguments in (
        ("schema", "data.csv", "-o", "schema.toml"),
        ("release", "data.csv", "--schema", "schema.toml", *budget, "-o", "run"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        schema = tmp_path / "schema.toml"
        schema.write_text(schema.read_text().replace("reviewed = false", "reviewed = true"))
    assert (tmp_path / "run" / "internal" / "report.html").stat().st_size > 1000
    assert grows_no_tree(program, tmp_path)


def grows_no_tree(program, folder):
    """Whether commands that need scikit-learn say so before they write or read anything."""
    table = ("data.csv", "--schema", "schema.toml")
    public = folder / "run" / "public" / "synthetic-1.csv"
    for arguments, what in (
        (("synthesize", *table, "--rows", "9", "--method", "cart", "-o", "s.csv"), "--method cart"),
        (("synthesize", *table, "--rows", "9", "--method", "forest", "-o", "s.csv"), "forest"),
        (("evaluate", "data.csv", public, *table[1:], "--target", "a"), "--target"),
        (("impute", public, *table[1:], "--imputations", "1", "-o", "i.csv"), "completing"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert what in done.stderr
        assert "pip install 'pegsynth[trees]'" in done.stderr
    return not (folder / "s.csv").exists() and not (folder / "i.csv").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_installs_for_a_demo_what_the_product_needs():
    """The rules of the Makefile, as `make` would follow them in a fresh clone."""
    for goal, lock in (("demo", "lock.txt"), ("check", "lock-dev.txt")):
        command = ["make", "--dry-run", f"VENV={ROOT / 'no-such-environment'}", goal]
        # Flags of the `make` that runs these tests are not those of a user.
        clean = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        done = subprocess.run(
            command, cwd=ROOT, env=clean, capture_output=True, text=True, check=True
        )
        plan = done.stdout
        assert [word for word in plan.split() if word.startswith("requirements/")] == [
            f"requirements/{lock}"
        ]
        assert plan.count("--require-hashes") == 1


@pytest.mark.parametrize("requirement", named(), ids=str)
def test_the_lowest_set_has_the_lowest_versions(requirement):
    version, _ = LOWEST[canonicalize_name(requirement.name)]
    (bound,) = requirement.specifier
    assert bound.operator == ">="
    assert Version(version).release[: len(Version(bound.version).release)] == (
        Version(bound.version).release
    )


def test_a_lock_names_no_index():
    for path in (ROOT / "requirements").iterdir():
        assert "://" not in path.read_text(), path.name


def test_every_line_of_a_lock_has_a_hash():
    for lock in (LOCKED, EVERYTHING):
        assert all(hashes for _, hashes in lock.values())
        assert len(lock) > len(PROJECT["dependencies"])


of_the_lock = pytest.mark.skipif(
    version("numba") != LOCKED["numba"][0], reason="another set of packages than the lock's"
)


@of_the_lock
def test_the_bill_of_materials_is_that_of_the_lock():
    """Of packages that are needed at run time, here and now."""
    bill = json.loads((ROOT / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {each["name"]: each for each in bill["components"]}
    for name in materials.needed():
        version, hashes = LOCKED[name]
        assert listed[name]["version"] == version
        (reference,) = listed[name]["externalReferences"]
        assert [each["content"] for each in reference["hashes"]] == hashes


@of_the_lock
def test_licences_bind_nobody():
    page = (ROOT / "docs" / "licences.md").read_text()
    for name, package in materials.needed().items():
        licence = materials.licence(package)
        assert any(word in licence for word in materials.ALLOWED), (name, licence)
        assert not any(word in licence for word in ("AGPL", "GPL-", "General Public")), name
        assert f"| {name} |" in page
