"""Every page of a release: axe-core finds nothing, letters are dark enough, sheets are full.

Pages: the internal report, QUALITY.html, the sign-off page and the comparison of releases; light
and dark, as wide as a desk and as a phone, and as printed.
"""

import re

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe

from browser import FAINT, OVERFLOWING, PHONE, WIDE, browser, opened
from command import done
from pegsynth.schema import Feature, Schema

# Two releases and a browser come before the first test.
pytestmark = pytest.mark.slow(seconds=12)

PAGES = ("report", "QUALITY", "sign-off", "compare")
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
A4_WIDTH, A4_HEIGHT = 695, 1017
"""What the margins leave of a sheet, in pixels of a style sheet."""
MOST_BLANK = 0.25
UNTORN = ".card { break-inside: avoid !important; }"


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Two small releases with everything that pages show, and the pages."""
    folder = tmp_path_factory.mktemp("pages")
    names = [f"feature{i}" for i in range(12)]
    rows = 240
    table = {
        name: [str((7 * i + j * i * i) % 3) for i in range(rows)] for j, name in enumerate(names)
    }
    pl.DataFrame(table).write_csv(folder / "table.csv")
    roles = ("quasi-identifier", "quasi-identifier", "sensitive")
    Schema(
        tuple(
            Feature(name, categories=("0", "1", "2"), role=roles[i] if i < 3 else "other")
            for i, name in enumerate(names)
        ),
        reviewed=True,
    ).save(folder / "schema.toml")
    told = ("--schema", folder / "schema.toml", "--rows", rows, "--delta", 1e-6)
    for number, epsilon in enumerate((1, 8), start=1):
        where = folder / f"release{number}"
        bought = ("--quality", 0.1, "--method", "pegs-once")
        done("release", folder / "table.csv", *told, "--epsilon", epsilon, *bought, "-o", where)
    releases = (folder / "release1", folder / "release2")
    done("compare", *releases, "--report", folder / "compare.html")
    return {
        "report": releases[1] / "internal" / "report.html",
        "sign-off": releases[1] / "internal" / "sign-off.html",
        "QUALITY": releases[1] / "public" / "QUALITY.html",
        "compare": folder / "compare.html",
    }


def violations(page):
    """Return what axe-core finds, as rules with the first element of each."""
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": list(TAGS)}})
    return [(each["id"], each["nodes"][0]["html"][:120]) for each in found.response["violations"]]


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(chromium, pages, name):
    for viewport in (WIDE, PHONE):
        for scheme in ("light", "dark"):
            with opened(chromium, pages[name], viewport=viewport, scheme=scheme) as found:
                assert violations(found.page) == []
                assert found.page.evaluate(FAINT) == []
                assert found.page.evaluate(OVERFLOWING) == []
                assert found.messages == []
    with opened(chromium, pages[name], scheme="dark") as found:
        found.page.emulate_media(media="print")
        assert violations(found.page) == []


def test_axe_sees_a_faint_label_and_a_box_that_no_key_reaches(chromium, pages):
    with opened(chromium, pages["sign-off"], viewport=PHONE) as found:
        found.page.evaluate(
            "document.querySelectorAll('.scroll').forEach(e => e.removeAttribute('tabindex'))"
        )
        found.page.add_style_tag(content="p { color: #b0b0b0 !important; }")
        rules = {rule for rule, _ in violations(found.page)}
    assert rules >= {"color-contrast", "scrollable-region-focusable"}


def blank_share(page):
    """Return which part of the printed sheets is blank, the last one aside."""
    page.emulate_media(media="print")
    sheets = len(re.findall(rb"/Type /Page\b", page.pdf(format="A4")))
    page.set_viewport_size({"width": A4_WIDTH, "height": A4_HEIGHT})
    filled = page.evaluate("document.documentElement.getBoundingClientRect().height") / A4_HEIGHT
    return max(0.0, 1 - filled / (sheets - 1)) if sheets > 1 else 0.0


@pytest.mark.parametrize("name", PAGES)
def test_sheets_are_not_half_empty(chromium, pages, name):
    with opened(chromium, pages[name]) as found:
        assert blank_share(found.page) < MOST_BLANK


def test_tables_that_may_not_be_torn_are_noticed(chromium, pages):
    with opened(chromium, pages["QUALITY"]) as found:
        found.page.add_style_tag(
            content=f"@media print {{ {UNTORN} .part {{ break-before: page }} }}"
        )
        assert blank_share(found.page) > MOST_BLANK
