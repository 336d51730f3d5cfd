"""Every numbered result of docs/maths.md is cited where it is built and where it is tested."""

from __future__ import annotations

import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"\bR\d+\b")
RESULTS = [f"R{number}" for number in range(1, 37)]
DOCUMENTED = ["R19", "R20"]
"""Results that are proved and enumerated, and that no release relies on."""
BUILT = [number for number in RESULTS if number not in DOCUMENTED]


@cache
def cited(folder: str) -> frozenset[str]:
    """Numbers in comments and strings of all modules below a folder; this module not counted."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        if path == Path(__file__):
            continue
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in (tokenize.COMMENT, tokenize.STRING):
                    found |= set(NUMBER.findall(token.string))
    return frozenset(found)


def sections() -> dict[str, str]:
    """Number to text of every result in docs/maths.md."""
    text = (ROOT / "docs" / "maths.md").read_text()
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {match[0]: part for part in parts if (match := re.match(r"R\d+", part))}


def test_the_page_states_every_result_once_and_in_order():
    assert list(sections()) == RESULTS
    headings = re.findall(r"^## R\d+\.", (ROOT / "docs" / "maths.md").read_text(), re.MULTILINE)
    assert len(headings) == len(RESULTS)


@pytest.mark.parametrize("number", RESULTS)
def test_every_result_says_where_it_is_built(number):
    assert "*Where.*" in sections()[number]
    assert "later part" not in sections()[number]


@pytest.mark.parametrize("number", DOCUMENTED)
def test_a_result_that_is_only_documented_is_in_no_release_and_is_enumerated(number):
    assert "In no release." in sections()[number]
    assert "*Not used by the code.*" in sections()[number]
    assert number not in cited("src")
    assert number in cited("tests")


@pytest.mark.parametrize("folder", ["src", "tests"])
@pytest.mark.parametrize("number", BUILT)
def test_every_result_that_is_built_is_cited(number, folder):
    assert number in cited(folder), f"no comment or docstring under {folder}/ cites {number}"


@pytest.mark.parametrize("folder", ["src", "tests", "checks", "studies"])
def test_no_citation_leads_nowhere(folder):
    numbers = re.compile(r"\bR\d+\b")
    for path in (ROOT / folder).rglob("*.py"):
        unknown = set(numbers.findall(path.read_text())) - set(RESULTS)
        assert not unknown, f"{path.name} cites {sorted(unknown)}"
