"""What pegsynth is made of: pinned, listed, and under licences that bind nobody."""

import importlib.util
import json
import tomllib
from importlib.metadata import version
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
LOWEST = materials.locked((ROOT / "requirements" / "lowest.txt").read_text())


def named():
    """Every package that we name ourselves."""
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("requirement", named(), ids=str)
def test_every_requirement_is_locked_within_its_bounds(requirement):
    version, hashes = LOCKED[canonicalize_name(requirement.name)]
    assert Version(version) in requirement.specifier
    assert hashes


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


def test_every_line_of_the_lock_has_a_hash():
    assert all(hashes for _, hashes in LOCKED.values())
    assert len(LOCKED) > len(PROJECT["dependencies"])


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
