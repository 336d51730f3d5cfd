"""A table whose names and categories are markup, from the file to the page in Chromium."""

import pytest

from browser import browser, opened
from command import done
from pegsynth.schema import Feature, Schema

MARKUP = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "]]><svg onload=alert(3)>",
    "</style><script>alert(4)</script>",
    "</title></svg><iframe src=javascript:alert(5)>",
    "<!--",
    "&lt;b&gt;",
    "{{ 7*7 }}",
    "javascript:alert(6)",
    "' onmouseover='alert(7)",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Evaluate a table of markup and return the page."""
    folder = tmp_path_factory.mktemp("hostile")
    names = MARKUP[:3]
    features = tuple(
        Feature(name, categories=MARKUP, label=MARKUP[3], role=role)
        for name, role in zip(names, ("quasi-identifier", "sensitive", "other"), strict=True)
    )
    Schema(features, reviewed=True).save(folder / "schema.toml")
    quoted = ['"' + text.replace('"', '""') + '"' for text in MARKUP]
    lines = [",".join('"' + name.replace('"', '""') + '"' for name in names)]
    lines += [",".join(quoted[(i * k) % 10] for k in (1, 3, 7)) for i in range(60)]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    table = (folder / "data.csv", "--schema", folder / "schema.toml")
    output = folder / "o.csv"
    done("synthesize", *table, "--rows", 40, "--epsilon-per-row", 1, "-o", output)
    tables = (folder / "data.csv", output, "--schema", folder / "schema.toml")
    ledger = ("--ledger", folder / "o.csv.privacy.json")
    done("evaluate", *tables, "--report", folder / "report.html", *ledger, "--threads", 1)
    return folder / "report.html"


@pytest.mark.slow
def test_markup_is_shown_and_not_run(page):
    with browser() as chromium, opened(chromium, page) as found:
        found.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found.page.mouse.move(200, 200)
        assert found.page.locator("script, img, iframe, object, embed, link").count() == 0
        handlers = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => "
        assert found.page.evaluate(f"{handlers} a.name.startsWith('on'))).length") == 0
        assert found.messages == []
        assert found.requests == [page.as_uri()]
        text = found.page.evaluate("document.documentElement.textContent")
    for markup in MARKUP[:3]:
        assert markup in text, markup


@pytest.mark.slow
def test_figures_beside_the_page_hold_no_markup(page):
    import xml.etree.ElementTree as ET

    figures = list(page.with_name("report-figures").glob("*.svg"))
    assert figures
    for figure in figures:
        tags = {element.tag.rpartition("}")[2] for element in ET.parse(figure).iter()}
        assert not tags & {"script", "img", "iframe", "foreignObject"}, figure.name
