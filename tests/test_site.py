"""The site builds without a warning, opens offline and leaves nothing out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import typer

from lanes import ALL, long_form, made_once

ROOT = Path(__file__).parent.parent
EXTERNAL = re.compile(r"""(?:<script[^>]+src|<link[^>]+href|<img[^>]+src)=["']https?://""")


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")


def test_the_page_of_commands_has_every_flag(tools, tmp_path):
    import command_reference

    from pegsynth.cli import commands

    command_reference.write(tmp_path / "commands.md")
    page = (tmp_path / "commands.md").read_text()
    app = typer.Typer()
    commands.register(app)
    for name, command in typer.main.get_command(app).commands.items():
        section = page.partition(f"## pegs {name}\n")[2].partition("\n## ")[0]
        flags = [flag for each in command.params for flag in each.opts if flag.startswith("-")]
        assert [flag for flag in flags if f"`{flag}`" not in section] == []


def test_pictures_take_their_colours_from_the_page(tools, tmp_path):
    """Fixed colours of text would vanish in one of the two schemes."""
    import pictures

    pictures.write(tmp_path)
    drawn = sorted(tmp_path.glob("*.html"))
    assert [file.stem for file in drawn] == ["block", "flow", "ledger", "sweep"]
    for file in drawn:
        figure = ET.fromstring(file.read_text())
        (svg,) = figure.iter("svg")
        assert svg.attrib["role"] == "img"
        assert svg.attrib["aria-label"] == figure.findtext("figcaption")
        assert not [text for text in svg.iter("text") if "fill" in text.attrib]
    bars = ET.fromstring((tmp_path / "ledger.html").read_text()).iter("rect")
    assert sum(float(bar.attrib["width"]) for bar in bars) == pytest.approx(640, abs=5)


def test_the_index_names_every_page():
    """Sphinx says so too, but only in the slow test."""
    index = (ROOT / "docs" / "index.md").read_text()
    listed = set(re.findall(r"^([\w/-]+)$", index, re.MULTILINE))
    assert page_names() - listed == {"index"}


def page_names():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    return {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in pages}


def test_every_page_has_one_title():
    """A second one would stand in the list of pages as a page of its own."""
    for page in (ROOT / "docs" / "tutorials").glob("*.md"):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", prose, re.MULTILINE)) == 1, page.name


def test_every_measure_has_a_formula():
    from pegsynth.publishing.report.measures import measures

    page = (ROOT / "docs" / "measures.md").read_text()
    assert [name for name in measures() if f"`{name}`" not in page] == []


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built once: a broken reference, a lost page and a failing cell are errors.

    The short form does not run the cells of the tutorials.
    """
    return made_once(tmp_path_factory, "site", build)


def build(folder):
    cells = () if ALL else ("-D", "nb_execution_mode=off")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", *cells, "docs", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow(seconds=90 if ALL else 30)
def test_the_site_builds_and_opens_offline(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if EXTERNAL.search(page.read_text())] == []
    index = (site / "searchindex.js").read_text()
    (listed,) = re.findall(r'"?docnames"?:\s*(\[.*?\])', index)
    assert set(json.loads(listed)) >= page_names()
    assert len(list(site.glob("report-*.html"))) == 3


@long_form
def test_the_cells_of_the_tutorials_print_what_they_should(site):
    analysed = (site / "tutorials" / "analyst.html").read_text()
    assert "replicate-weights" in analysed
    assert "NOT AS LISTED" not in re.sub(r"<pre>.*?</pre>", "", analysed, count=4, flags=re.DOTALL)


@pytest.mark.slow
def test_links_lead_to_pages_and_places_that_are_there(site):
    """Sphinx checks references that it knows; this looks at what stands in the pages."""
    texts = {page: page.read_text() for page in site.rglob("*.html")}
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for target in set(re.findall(r'<a [^>]*href="([^"]+)"', text)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            linked = (page.parent / name).resolve() if name else page
            known = places.get(linked)
            if not linked.exists() or (anchor and known is not None and anchor not in known):
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.slow
def test_search_works_on_pages_that_are_opened_as_files(site):
    from browser import browser

    with browser() as chromium:
        page = chromium.new_context().new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{(site / 'search.html').as_uri()}?q=l-diversity")
        page.locator("#search-results li a").first.wait_for()
        assert page.locator("#search-results li a").count() > 2
