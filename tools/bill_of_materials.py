"""Write what pegsynth is made of: ``python tools/bill_of_materials.py SBOM.json LICENCES.md``.

The first file is a CycloneDX 1.6 bill of materials of the packages that pegsynth needs at
run time, with the versions and hashes of ``requirements/lock.txt``; the second lists their
licences. Both are made from what is installed here, and are the same each time.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
ALLOWED = ("Apache", "BSD", "MIT", "MPL", "PSF", "Python Software Foundation", "ISC", "0BSD")
"""What a licence must mention; nothing that would bind who uses pegsynth."""

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def locked(text: str) -> dict[str, tuple[str, list[str]]]:
    """Return version and hashes of every package of a lock."""
    found = {}
    pins = list(_PIN.finditer(text))
    for pin, following in zip(pins, [*pins[1:], None], strict=True):
        part = text[pin.end() : following.start() if following else len(text)]
        found[canonicalize_name(pin["name"])] = (pin["version"], sorted(_HASH.findall(part)))
    return found


def needed() -> dict[str, Distribution]:
    """Return every package that pegsynth needs at run time, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    found: dict[str, Distribution] = {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not _wanted(requirement):
            continue
        found[name] = distribution(requirement.name)
        waiting += [Requirement(line) for line in found[name].requires or ()]
    return dict(sorted(found.items()))


def _wanted(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def licence(package: Distribution) -> str:
    """Return the licence that a package states of itself."""
    told = package.metadata
    expression = told.get("License-Expression")
    if expression:
        return str(expression)
    classes = [line for line in told.get_all("Classifier") or () if line.startswith("License ::")]
    if classes:
        return ", ".join(sorted({line.rsplit(" :: ", 1)[1] for line in classes}))
    return str(told.get("License") or "unknown").strip().splitlines()[0]


def bill(packages: Mapping[str, Distribution]) -> dict[str, Any]:
    """Return the bill of materials."""
    pins = locked((ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": list(_components(packages, pins)),
    }


def _components(
    packages: Mapping[str, Distribution], pins: Mapping[str, tuple[str, list[str]]]
) -> Iterator[dict[str, Any]]:
    for name, package in packages.items():
        version, hashes = pins[name]
        address = f"pkg:pypi/{name}@{version}"
        yield {
            "type": "library",
            "bom-ref": address,
            "name": name,
            "version": version,
            "purl": address,
            "licenses": [{"license": {"name": licence(package)}}],
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": address,
                    "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
                }
            ],
        }


def licences(packages: Mapping[str, Distribution]) -> str:
    """Return a page that lists the licence of every package."""
    lines = [
        "# Licences of what pegsynth needs",
        "",
        "Written by `make bom` from the packages themselves; do not edit. pegsynth itself is",
        "under Apache-2.0.",
        "",
        "| package | licence |",
        "|---|---|",
        *(f"| {name} | {licence(package)} |" for name, package in packages.items()),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both files."""
    packages = needed()
    Path(sys.argv[1]).write_text(json.dumps(bill(packages), indent=1) + "\n", encoding="utf-8")
    Path(sys.argv[2]).write_text(licences(packages), encoding="utf-8")


if __name__ == "__main__":
    main()
