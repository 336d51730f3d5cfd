"""The studio in a real browser: the whole path, keyboard, phone, dark, a killed server."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from running import studio, write_table

from browser import FAINT, PHONE, WIDE, browser
from pegsynth.schema import Schema
from pegsynth.studio.project import Project

OVERFLOWING = """() => [...document.querySelectorAll('main *, header *')].filter(e => {
  if (e.closest('.wide, pre, .skip, textarea, option')) return false;
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.outerHTML.slice(0, 80))"""
UNNAMED = """() => [...document.querySelectorAll('input, select, textarea, button')].filter(e =>
  e.type !== 'hidden' && !e.labels?.length && !e.getAttribute('aria-label')
  && !e.textContent.trim()).map(e => e.outerHTML.slice(0, 80))"""
LONGEST = 0.3
"""Seconds for a page of 200 columns, in processor time of the server; asked of a quiet machine."""


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


def page_of(chromium, running, *, viewport=WIDE, scheme="light"):
    context = chromium.new_context(viewport=viewport, color_scheme=scheme)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto(running.address)
    return page


def look(page):
    """Check what every page must fulfil."""
    assert page.said == []
    assert page.evaluate(FAINT) == []
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(UNNAMED) == []
    assert page.locator("h1").count() == 1
    assert page.locator(".mark").count() >= 1
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
    assert [each["id"] for each in found.response["violations"]] == []


@pytest.mark.slow(seconds=40)
def test_the_whole_path_from_a_file_to_the_results(chromium, tmp_path):
    with studio(write_table(tmp_path)) as running:
        page = page_of(chromium, running)
        assert "token" not in page.url
        look(page)
        page.fill("#data", "stays.csv")
        page.check("#how-rows")
        page.check("#may-see")
        page.get_by_role("button", name="Take this table").click()
        page.get_by_role("link", name="Go on to the codebook.").click()
        look(page)
        page.get_by_role("link", name="ward").click()
        look(page)
        page.select_option("#role", "sensitive")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="All columns").click()
        page.fill("#reviewer", "A. Reviewer")
        page.check("#declared")
        page.get_by_role("button", name="Sign the review").click()
        assert "Reviewed by A. Reviewer" in page.text_content("main")
        page.get_by_role("link", name="Go on to the plan.").click()
        page.fill("#epsilon", "2")
        page.fill("#rows", "50")
        page.get_by_role("button", name="Predict").click()
        look(page)
        assert "epsilon 2" in page.text_content("main")
        page.go_back()
        page.go_forward()
        page.get_by_role("link", name="Go on to the release.").click()
        look(page)
        page.get_by_role("button", name="Release", exact=True).click()
        page.get_by_role("link", name="To the results.").click()
        look(page)
        assert "epsilon = 2" in page.text_content("main")
        with page.expect_download() as waited:
            page.get_by_role("link", name="Download what may be published").click()
        assert waited.value.suggested_filename == "release-1-public.zip"
        page.get_by_role("link", name="Open the internal report").click()
        assert page.locator("svg").count() > 0
        assert Schema.load(tmp_path / "schema.toml")["ward"].role == "sensitive"


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A project of 200 columns with a draft."""
    folder = write_table(tmp_path_factory.mktemp("wide"), columns=200)
    Schema.draft(pl.read_csv(folder / "stays.csv")).save(folder / "schema.toml")
    Project(folder, data="stays.csv", may_see=True).save()
    with studio(folder) as running:
        yield running


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_legible_everywhere(chromium, wide, viewport, scheme):
    page = page_of(chromium, wide, viewport=viewport, scheme=scheme)
    for path in ("table", "codebook", "codebook/1", "plan", "release", "results"):
        page.goto(f"{wide.address.partition('/?')[0]}/{path}")
        look(page)


@pytest.mark.slow(seconds=15)
def test_200_columns_are_found_ticked_and_changed_by_keyboard(chromium, wide):
    page = page_of(chromium, wide)
    page.goto(f"{wide.address.partition('/?')[0]}/codebook")
    page.focus("#filter")
    page.keyboard.type("q19")
    assert page.text_content("#filter-shown") == "9 of 200 columns"
    page.focus("#tick-all")
    page.keyboard.press("Space")
    page.focus("#role")
    page.keyboard.type("sens")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/codebook")
    page.wait_for_selector("tr[data-name=q190][data-role=sensitive]")
    schema = Schema.load(wide.folder / "schema.toml")
    changed = [feature.name for feature in schema.features if feature.role == "sensitive"]
    assert len(changed) == 9
    assert all(name.startswith("q19") for name in changed)


@pytest.mark.slow(seconds=15)
def test_a_command_outlives_its_server_and_two_tabs_agree(chromium, tmp_path):
    write_table(tmp_path)
    with studio(tmp_path) as running:
        first, second = page_of(chromium, running), page_of(chromium, running)
        from pegsynth.studio import jobs

        jobs.start(tmp_path, ("audit", "--full"))
        for page in (first, second):
            page.goto(f"{running.address.partition('/?')[0]}/release")
            assert "Running" in page.text_content("main")
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(30)
        first.get_by_text("The server does not answer").wait_for()
    with studio(tmp_path) as again:
        page = page_of(chromium, again)
        page.goto(f"{again.address.partition('/?')[0]}/release")
        page.get_by_role("button", name="Stop it").click()
        page.get_by_text("Last command: stopped").wait_for()


@pytest.mark.slow
def test_a_page_of_200_columns_is_quick(wide):
    """The server's own work, in a process that does nothing else."""
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from pegsynth.studio.pages import STEPS, _Studio\n"
        "from pegsynth.studio.guard import Guard\nfrom pegsynth.studio.project import Project\n"
        "folder = Path(sys.argv[1])\n"
        "studio = _Studio(folder, Guard('t', frozenset()))\n"
        "studio._shown('codebook', Project.open(folder))\n"
        "began = time.process_time()\n"
        "studio._shown('codebook', Project.open(folder))\n"
        "print(time.process_time() - began)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(wide.folder)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < LONGEST


def test_the_browser_is_not_needed_to_know_when_it_is_stopped(tmp_path):
    """Ctrl-C ends the server at once, and what it said was one address."""
    with studio(write_table(tmp_path)) as running:
        running.process.send_signal(signal.SIGINT)
        until = time.monotonic() + 60
        while running.process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert running.process.poll() is not None
