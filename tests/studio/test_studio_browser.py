"""The studio in a real browser: the whole path, keyboard, phone, dark, a killed server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from running import studio, write_table

from browser import FAINT, PHONE, WIDE, browser
from lanes import longer
from pegsynth.schema import Schema
from pegsynth.studio import jobs
from pegsynth.studio.project import Project

LONG = bool(os.environ.get("PEGSYNTH_LONG"))
OVERFLOWING = """() => [...document.querySelectorAll('main *, header *')].filter(e => {
  if (e.closest('.wide, pre, .skip, .silent, textarea, option')) return false;
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.outerHTML.slice(0, 80))"""
UNNAMED = """() => [...document.querySelectorAll('input, select, textarea, button')].filter(e =>
  e.type !== 'hidden' && !e.labels?.length && !e.getAttribute('aria-label')
  && !e.textContent.trim()).map(e => e.outerHTML.slice(0, 80))"""
HERE = """wanted => document.activeElement && document.activeElement.matches(wanted)"""
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}
PAGES = ("table", "codebook", "codebook/1", "plan", "release", "results")
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
    context.add_cookies(running.cookies)
    page.goto(running.address)
    page.wait_for_url(re.compile(r"/[a-z]+$"))
    running.cookies[:] = context.cookies()
    return page


def go(page, running, path):
    page.goto(f"{running.home}/{path}")


def look(page, *, axe=True):
    """Check what every page must fulfil, with everything opened that can be."""
    page.evaluate("() => document.querySelectorAll('details').forEach(e => e.open = true)")
    assert page.said == []
    assert page.evaluate(FAINT) == []
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(UNNAMED) == []
    assert page.locator("h1").count() == 1
    assert page.locator(".mark").count() >= 1
    if axe:
        found = Axe().run(page, options=RULES)
        assert [each["id"] for each in found.response["violations"]] == []


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


@pytest.fixture(scope="module")
def walked(chromium, tmp_path_factory):
    """A project that was led from a file to compared releases, and its server."""
    folder = write_table(tmp_path_factory.mktemp("walked"))
    with studio(folder) as running:
        page = page_of(chromium, running)
        assert "token" not in page.url
        look(page)
        page.fill("#data", "stays.csv")
        page.check("#how-rows")
        page.check("#may-see")
        press(page, "Take this table")
        page.get_by_role("link", name="Go on to the codebook.").click()
        press(page, "Count rows")
        page.get_by_text("rows were counted").wait_for()
        page.get_by_role("link", name="ward", exact=True).click()
        assert page.locator("rect").count() == 3
        page.select_option("#role", "sensitive")
        press(page, "Save")
        page.get_by_role("link", name="All columns").click()
        page.get_by_text("Add a rule").click()
        page.select_option("#feature-b", "ward")
        page.fill("#values-a", "f")
        page.fill("#values-b", "marker\nb")
        press(page, "Add it")
        page.get_by_text("Never sex in f and ward in b, marker").wait_for()
        page.get_by_role("button", name="Drop the rule").click()
        page.fill("#reviewer", "A. Reviewer")
        page.check("#declared")
        press(page, "Sign the review")
        assert "Reviewed by A. Reviewer" in page.text_content("main")
        page.locator("main > p").get_by_role("link", name="Go on to the plan.").last.click()
        page.fill("#epsilon", "2")
        page.fill("#rows", "50")
        press(page, "Predict")
        assert "epsilon 2" in page.text_content("main")
        page.fill("#book-file", "stays.book")
        page.get_by_text("Or make it").click()
        page.fill("#book-epsilon", "3")
        page.fill("#book-delta", "1e-6")
        press(page, "Make it")
        page.get_by_text("Epsilon 2 is covered").wait_for()
        page.go_back()
        page.go_forward()
        page.get_by_role("link", name="Go on to the release.").click()
        press(page, "Release")
        page.get_by_role("link", name="To the results.").click()
        assert "epsilon = 2" in page.text_content("main")
        with page.expect_download() as waited:
            page.get_by_role("link", name="Download what may be published").click()
        assert waited.value.suggested_filename == "release-1-public.zip"
        shutil.copytree(folder / "release-1", folder / "release-2")
        page.reload()
        press(page, "Compare them")
        page.get_by_role("link", name="Open the comparison").click()
        # Nobody said what an intruder knows, so no risk was measured that a map could show.
        assert page.get_by_text("What is promised").count() == 1
        assert page.locator("main table, table").count() >= 3
        page.go_back()
        page.get_by_role("link", name="Open the internal report").first.click()
        assert page.locator("svg").count() > 0
        assert Schema.load(folder / "schema.toml")["ward"].role == "sensitive"
        yield running


@pytest.mark.slow(seconds=45)
@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(WIDE, "light", id="wide-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        longer(WIDE, "dark", id="wide-dark"),
        longer(PHONE, "light", id="phone-light"),
    ],
)
def test_every_page_of_the_whole_path_is_legible(chromium, walked, viewport, scheme):
    """The path itself is walked by the fixture; here its pages are looked at in every form."""
    page = page_of(chromium, walked, viewport=viewport, scheme=scheme)
    for path in PAGES:
        go(page, walked, path)
        look(page)
    for path in ("report/release-1", "sign-off/release-1", "comparison"):
        go(page, walked, path)
        assert page.said == []
        assert page.locator("h1").count() >= 1


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A project of 200 columns with a draft."""
    folder = write_table(tmp_path_factory.mktemp("wide"), columns=200)
    Schema.draft(pl.read_csv(folder / "stays.csv")).save(folder / "schema.toml")
    Project(folder, data="stays.csv", may_see=True).save()
    with studio(folder) as running:
        yield running


@pytest.mark.slow(seconds=15)
def test_200_columns_are_found_ticked_and_changed_by_keyboard(chromium, wide):
    page = page_of(chromium, wide)
    for path in PAGES:
        go(page, wide, path)
        look(page, axe=False)
    go(page, wide, "codebook")
    page.focus("#filter")
    page.keyboard.type("q19")
    assert page.text_content("#filter-shown") == "9 of 200 columns"
    page.focus("#tick-all")
    page.keyboard.press("Space")
    page.focus("#role")
    page.keyboard.type("sens")
    page.focus("#columns fieldset button")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr[data-name=q190][data-role=sensitive]")
    schema = Schema.load(wide.folder / "schema.toml")
    changed = [feature.name for feature in schema.features if feature.role == "sensitive"]
    assert len(changed) == 9
    assert all(name.startswith("q19") for name in changed)


def tab_to(page, wanted, most=80):
    """Press Tab until something has the focus, as somebody without a mouse does."""
    for _ in range(most):
        if page.evaluate(HERE, wanted):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}")


@pytest.mark.slow(seconds=15)
def test_a_table_is_taken_and_reviewed_by_keyboard_alone(chromium, tmp_path):
    with studio(write_table(tmp_path)) as running:
        page = page_of(chromium, running)
        tab_to(page, ".skip")
        page.keyboard.press("Enter")
        tab_to(page, "#data")
        page.keyboard.type("stays.csv")
        tab_to(page, "input[name=how]")
        page.keyboard.press("ArrowDown")
        tab_to(page, "#may-see")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        page.wait_for_selector(".panel a[href='/codebook']")
        tab_to(page, ".panel a[href='/codebook']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/codebook")
        tab_to(page, "#reviewer")
        page.keyboard.type("K. Board")
        tab_to(page, "#declared")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        page.get_by_text("Reviewed by K. Board").wait_for()


@pytest.mark.slow(seconds=15)
def test_a_command_outlives_its_server_and_two_tabs_agree(chromium, tmp_path):
    write_table(tmp_path)
    Schema.draft(pl.read_csv(tmp_path / "stays.csv")).save(tmp_path / "schema.toml")
    Project(tmp_path, data="stays.csv", may_see=True).save()
    with studio(tmp_path) as running:
        first, second = page_of(chromium, running), page_of(chromium, running)
        for page in (first, second):
            go(page, running, "codebook/1")
        first.select_option("#role", "sensitive")
        press(first, "Save")
        second.fill("#edges", "b a")
        press(second, "Save")
        second.get_by_role("alert").get_by_text("edges are numbers").wait_for()
        second.go_back()
        second.reload()
        assert second.input_value("#role") == "sensitive"
        jobs.start(tmp_path, ("audit", "--full"))
        for page in (first, second):
            go(page, running, "release")
            assert "Running" in page.text_content("main")
            go(page, running, "plan")
            assert "A command is running." in page.text_content("main")
        go(first, running, "release")
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(30)
        first.get_by_text("The server does not answer").wait_for()
    with studio(tmp_path) as again:
        page = page_of(chromium, again)
        go(page, again, "release")
        press(page, "Stop it")
        page.get_by_text("Last command: stopped").wait_for()


@pytest.mark.slow
def test_a_page_of_200_columns_is_quick(wide):
    """The server's own work, in a process that does nothing else."""
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from pegsynth.studio.pages import _Studio\n"
        "from pegsynth.studio.guard import Guard\nfrom pegsynth.studio.project import Project\n"
        "folder = Path(sys.argv[1])\n"
        "studio = _Studio(folder, Guard(frozenset(), 0))\n"
        "for step in ('codebook', 'plan'):\n"
        "    studio._shown(step, Project.open(folder))\n"
        "    began = time.process_time()\n"
        "    studio._shown(step, Project.open(folder))\n"
        "    print(time.process_time() - began)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(wide.folder)], capture_output=True, text=True, check=True
    )
    assert max(map(float, done.stdout.split())) < LONGEST


def test_the_browser_is_not_needed_to_know_when_it_is_stopped(tmp_path):
    """Ctrl-C ends the server at once, and what it said was one address."""
    with studio(write_table(tmp_path)) as running:
        running.process.send_signal(signal.SIGINT)
        until = time.monotonic() + 60
        while running.process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert running.process.poll() is not None


@pytest.mark.skipif(not LONG, reason="minutes; PEGSYNTH_LONG=1")
def test_a_million_rows_are_handed_over_released_and_downloaded(chromium, tmp_path):
    rows = 1_000_000
    pl.DataFrame(
        {
            "sex": pl.int_range(rows, eager=True) % 2,
            "ward": pl.int_range(rows, eager=True) // 7 % 12,
            "stay": pl.int_range(rows, eager=True) * 17 % 97,
        }
    ).write_csv(tmp_path / "large.csv")
    with studio(tmp_path / "project") as running:
        page = page_of(chromium, running)
        page.context.set_default_timeout(600_000)
        page.set_input_files("#file", tmp_path / "large.csv")
        page.check("#how-rows")
        page.check("#may-see")
        press(page, "Take this table")
        page.get_by_role("link", name="Go on to the codebook.").click()
        press(page, "Count rows")
        page.get_by_text("1,000,000 rows were counted").wait_for()
        page.fill("#reviewer", "R")
        page.check("#declared")
        press(page, "Sign the review")
        go(page, running, "plan")
        page.fill("#rows", str(rows))
        press(page, "Predict")
        go(page, running, "release")
        press(page, "Release")
        page.get_by_role("link", name="To the results.").click()
        with page.expect_download() as waited:
            page.get_by_role("link", name="Download what may be published").click()
        waited.value.save_as(tmp_path / "public.zip")
        assert (tmp_path / "public.zip").stat().st_size > rows
