"""The page in a real headless Chromium."""

import pytest
from every_record import IMAGE, SCRIPT, every_record

from browser import DRAWN, FAINT, OVERFLOWING, PHONE, WIDE, browser, opened
from pegsynth.publishing.report.figure import Figure, Table
from pegsynth.publishing.report.html import Section, render, render_study

STATEMENT = "This release is private.\n\nAssumed to be public knowledge:\n- the schema\n"
GUARANTEE = {"kind": "approximate", "epsilon": 0.99, "delta": 1e-9, "rho": 0.01}
OPEN_PARTS = "document.querySelectorAll('details.part').forEach(d => d.open = true)"
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(
        render(every_record(), statement=STATEMENT, guarantee=GUARANTEE, title=f"Report {SCRIPT}")
    )
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    points = [
        {"series": method, "x": 0.1 * i, "y": 0.3 + 0.01 * i, "text": f"{method} {SCRIPT}"}
        for method in ("pegs", "pmi", IMAGE)
        for i in range(1, 8)
    ]
    kind, look = "risk_utility_map", {"width": 900}
    figure = Figure("map", "Risk and utility", "All methods.", kind, points, look)
    wide = Table(tuple(f"column {i}" for i in range(30)), (tuple("0123456789" * 3),), "Wide")
    sections = [Section(f"{i}. {SCRIPT}", ("Text.",), (figure,), (wide,)) for i in range(1, 3)]
    path = tmp_path_factory.mktemp("study") / "report.html"
    path.write_text(render_study("Study", sections, warning="Made from real data."))
    return path


@pytest.fixture(params=["report", "study"])
def path(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_opens_without_a_word_and_fits(chromium, path, viewport, scheme):
    with opened(chromium, path, viewport=viewport, scheme=scheme) as found:
        for _ in range(2):
            assert found.page.evaluate(OVERFLOWING) == []
            assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert found.page.evaluate(FAINT) == []
            found.page.evaluate(OPEN_ALL)
        assert found.messages == []
        assert found.requests == [path.as_uri()]


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_every_figure_is_drawn(chromium, report, viewport):
    with opened(chromium, report, viewport=viewport) as found:
        found.page.evaluate(OPEN_PARTS)
        figures = found.page.evaluate(DRAWN)
    assert len(figures) == 16
    for figure in figures:
        assert figure["width"] > 250, figure
        assert figure["height"] > 60, figure
        assert figure["marks"] > 6, figure
        assert figure["texts"] > 4, figure
        assert figure["outside"] == 0, figure
        assert figure["label"], figure


def test_hostile_names_are_shown_and_never_run(chromium, path):
    with opened(chromium, path) as found:
        assert found.page.locator("script, img, iframe, object, embed, link").count() == 0
        assert found.messages == []
        text = found.page.evaluate("document.documentElement.textContent")
    assert SCRIPT in text
    assert IMAGE in text


def test_links_lead_somewhere(chromium, path):
    with opened(chromium, path) as found:
        links = found.page.locator("a")
        for number in range(1, links.count()):
            links.nth(number).click()
            heading = found.page.locator(":target")
            assert heading.count() == 1
            assert heading.bounding_box()["y"] < WIDE["height"]


def test_the_keyboard_reaches_everything(chromium, report):
    who = "(e => [e.tagName, e.getAttribute('class'), e.getAttribute('aria-label')])"
    with opened(chromium, report) as found:
        found.page.evaluate(OPEN_PARTS)
        reached = []
        wanted = found.page.evaluate(
            "[...document.querySelectorAll('a, summary, .hit, .scroll[tabindex]')]"
            ".filter(e => e.checkVisibility()).length"
        )
        for _ in range(wanted):
            found.page.keyboard.press("Tab")
            reached.append(tuple(found.page.evaluate(f"{who}(document.activeElement)")))
        found.page.keyboard.press("Tab")
        assert found.page.evaluate("document.activeElement === document.body")
    kinds = [name.lower() for name, _, _ in reached]
    assert reached[0][1] == "skip"
    assert "body" not in kinds
    assert kinds.count("a") == 7
    assert kinds.count("summary") > 20
    points = [label for name, _, label in reached if name == "g"]
    assert len(points) == 6
    assert any(label.startswith("this release: Rows out of place") for label in points)


def test_a_point_speaks_when_pointed_at(chromium, report):
    with opened(chromium, report) as found:
        found.page.evaluate(OPEN_PARTS)
        point = found.page.locator(".hit").last
        tip = point.locator(".tip")
        assert not tip.is_visible()
        point.locator("circle").hover()
        assert tip.is_visible()
        box = point.locator("circle").bounding_box()
        found.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
        assert tip.is_visible()
        assert "this release" in tip.text_content()
        found.page.mouse.move(0, 0)
        assert not tip.is_visible()
        point.focus()
        assert tip.is_visible()


def test_the_first_screen_holds_the_card_the_picture_and_the_verdict(chromium, report):
    with opened(chromium, report) as found:
        assert found.page.locator(".scores li").count() == 6
        last = found.page.locator(".lines li").last.bounding_box()
        assert last["y"] + last["height"] <= WIDE["height"] + 20
        assert found.page.locator("details.part[open]").count() == 0
        found.page.locator(".scores a").first.click()
        assert found.page.locator("details.part[open] #features").count() == 1


def test_it_prints(chromium, report):
    with opened(chromium, report, scheme="dark") as found:
        assert not found.page.locator("#features .card").first.is_visible()
        found.page.emulate_media(media="print")
        assert found.page.evaluate(FAINT) == []
        # What is folded on the screen stands open on paper.
        assert found.page.locator("#features .card").first.is_visible()
        paper = found.page.pdf(format="A4")
    assert paper.startswith(b"%PDF-")
    assert len(paper) > 50_000


@pytest.mark.slow
def test_a_real_evaluation_opens(chromium, tmp_path):
    from pegsynth.datasets import discharge, discharge_schema
    from pegsynth.evaluation.evaluate import evaluate

    rows = discharge(1500, 1)
    metrics = evaluate(
        rows[:600], [rows[:300], rows[300:600]], discharge_schema(), holdout=rows[600:]
    )
    path = tmp_path / "report.html"
    path.write_text(render(metrics))
    with opened(chromium, path, viewport=PHONE, scheme="dark") as found:
        found.page.evaluate(OPEN_PARTS)
        assert found.page.evaluate(OVERFLOWING) == []
        assert found.page.evaluate(FAINT) == []
        assert found.messages == []
        figures = found.page.evaluate(DRAWN)
        assert len(figures) >= 12
        assert all(figure["outside"] == 0 and figure["marks"] > 6 for figure in figures), figures
        text = found.page.evaluate("document.body.innerText")
    assert "No ledger was given: nothing is known about a guarantee" in text
    assert "Worse than the reference" in text


def test_a_broken_page_is_caught(chromium, tmp_path):
    """The questions find what they look for."""
    path = tmp_path / "broken.html"
    path.write_text(
        "<!doctype html><html><body><p style='width:2000px;color:#ccc'>wide and faint</p>"
        "<svg class='chart' width='10' height='10'></svg><script>console.error('oh')</script>"
        "<img src='https://example.invalid/x.png'></body></html>"
    )
    with opened(chromium, path, viewport=PHONE) as found:
        assert found.page.evaluate(OVERFLOWING)
        assert found.page.evaluate(FAINT)
        assert found.page.evaluate(DRAWN)[0]["marks"] == 0
        assert "oh" in found.messages
        assert len(found.requests) == 2
