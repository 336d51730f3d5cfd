"""The site builds without a warning, opens offline and leaves nothing out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import typer

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
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    names = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in pages}
    assert names - listed == {"index"}


def test_every_measure_has_a_formula():
    from pegsynth.reporting.measures import MEASURES

    page = (ROOT / "docs" / "measures.md").read_text()
    assert [name for name in MEASURES if f"`{name}`" not in page] == []


@pytest.mark.slow(seconds=90)
def test_the_site_builds_and_opens_offline(tmp_path):
    """A broken reference, a page outside the index and a failing cell are errors (``-W``)."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if EXTERNAL.search(page.read_text())] == []
    assert (tmp_path / "site" / "searchindex.js").stat().st_size > 100_000
    assert len(list((tmp_path / "site").glob("report-*.html"))) == 3
    analysed = (tmp_path / "site" / "tutorials" / "analyst.html").read_text()
    assert "replicate-weights" in analysed
    assert "NOT AS LISTED" not in re.sub(r"<pre>.*?</pre>", "", analysed, count=4, flags=re.DOTALL)
