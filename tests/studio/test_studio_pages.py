"""What the forms of the studio do, without a browser; each is what a command would do."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from running import Client, in_process, write_table

from pegsynth.schema import Schema
from pegsynth.studio import jobs, spelled_commands
from pegsynth.studio.project import Project


class Browser:
    """Fills in forms as a browser would, and waits for the command."""

    def __init__(self, folder: Path, client: Client) -> None:
        self.folder, self.client = folder, client.enter()
        self.send = self.client.send

    def wait(self):
        until = time.monotonic() + 240
        while (job := jobs.current(self.folder)).running and time.monotonic() < until:
            time.sleep(0.05)
        return job

    def drafted(self):
        """Put a draft there, without the command that makes it."""
        table = pl.read_csv(self.folder / "stays.csv")
        Schema.draft(table).save(self.folder / "schema.toml")
        Project(self.folder, data="stays.csv", may_see=True).save()
        return self


@pytest.fixture
def browser(tmp_path):
    with in_process(write_table(tmp_path)) as client:
        yield Browser(tmp_path, client)


def reviewed(browser):
    browser.drafted()
    browser.send("/codebook", what="review", reviewer="A. Reviewer", declared="yes")
    assert browser.client.get("/codebook").text.count("Reviewed by A. Reviewer") == 1
    return browser


def test_rows_are_not_shown_before_the_user_says_so(browser):
    refused = browser.send("/table", data="stays.csv", how="rows")
    assert refused.status == 400
    assert "say that you may see them" in refused.text
    browser.send("/table", data="stays.csv", how="private")
    assert browser.wait().status == 0
    pages = [browser.client.get(path).text for path in ("/table", "/codebook", "/codebook/1")]
    assert not any("marker" in page for page in pages)
    assert Schema.load(browser.folder / "schema.toml")["ward"].private_categories


def test_a_draft_from_rows_shows_them(browser):
    browser.send("/table", data="stays.csv", how="rows", may_see="yes")
    assert browser.wait().status == 0, jobs.current(browser.folder).log
    page = browser.client.get("/codebook").text
    assert "marker" in page
    assert "Not reviewed" in page


def test_what_a_command_refuses_is_told(browser):
    browser.send("/table", data="none.csv", how="rows", may_see="yes")
    job = browser.wait()
    assert job.status == 2
    assert "none.csv" in browser.client.get("/table").text
    assert "Traceback" not in job.log


def test_a_file_can_be_handed_over(browser, tmp_path):
    content = (tmp_path / "stays.csv").read_bytes()
    browser.client.hand_over("../../up.csv", content, how="rows", may_see="yes")
    assert browser.wait().status == 0
    kept = browser.folder / "table-up.csv"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_bytes() == content


def test_roles_are_given_to_many_at_once_and_take_the_review_back(browser):
    reviewed(browser)
    browser.send("/codebook", what="roles", role="quasi-identifier", chosen=["sex", "q0"])
    schema = Schema.load(browser.folder / "schema.toml")
    assert [schema[name].role for name in ("sex", "ward", "q0")] == [
        "quasi-identifier",
        "other",
        "quasi-identifier",
    ]
    assert not schema.reviewed


def test_one_feature_is_changed(browser):
    browser.drafted()
    answer = browser.send(
        "/codebook",
        what="feature",
        name="ward",
        role="sensitive",
        kind="ordinal",
        label="the ward",
        categories="b\r\nc\r\nmarker\r\nd",
        missing="",
        edges="",
        private="",
        to="/codebook/1",
    )
    assert answer.status == 200
    ward = Schema.load(browser.folder / "schema.toml")["ward"]
    assert (ward.role, ward.kind, ward.label) == ("sensitive", "ordinal", "the ward")
    assert ward.categories == ("b", "c", "marker", "d")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"what": "unit", "unit": "sex", "rows_per_unit": "many"}, "whole number"),
        ({"what": "roles", "role": "other"}, "tick the features"),
        ({"what": "review", "reviewer": ""}, "your name"),
        ({"what": "text", "text": "format = 1\nfeaturs = []"}, "featurs"),
        ({"what": "nothing"}, "not one of the codebook"),
        ({"what": "rule", "number": "7"}, "no such rule"),
        ({"what": "feature", "name": "ward", "role": "other", "edges": "a b"}, "edges are numbers"),
    ],
)
def test_a_wrong_form_changes_nothing_and_says_why(browser, fields, told):
    browser.drafted()
    before = (browser.folder / "schema.toml").read_bytes()
    answer = browser.send("/codebook", **fields)
    assert answer.status == 400
    assert told in answer.text
    assert (browser.folder / "schema.toml").read_bytes() == before


def test_the_plan_reads_no_row(browser):
    reviewed(browser)
    (browser.folder / "stays.csv").unlink()
    answer = browser.send("/plan", epsilon="2", delta="1e-9", rows="100", method="auto")
    assert answer.status == 200
    assert "pegs-once" in answer.text
    assert "What this epsilon means" in answer.text


@pytest.mark.parametrize(("name", "text"), [("epsilon", "much"), ("rows", "1.5")])
def test_a_plan_that_cannot_be_says_why(browser, name, text):
    reviewed(browser)
    answer = browser.send("/plan", **{"epsilon": "1", "rows": "10", name: text})
    assert answer.status == 400
    assert "number" in answer.text


@pytest.mark.slow(seconds=25)
@pytest.mark.parametrize(
    "choices",
    [
        {"epsilon": "1", "rows": "40", "method": "pegs-once", "seed": "5"},
        {
            "epsilon": "3",
            "delta": "1e-9",
            "rows": "30",
            "datasets": "2",
            "method": "pegs-rs",
            "seed": "9",
        },
    ],
    ids=["pegs-once", "pegs-rs"],
)
def test_page_command_and_code_give_the_same_folder(browser, tmp_path, choices):
    """The command that is shown, and the code, are run by themselves and compared byte by byte."""
    reviewed(browser)
    browser.send("/plan", **choices)
    spelled = spelled_commands.release(Project.open(browser.folder), "release-1")
    browser.send("/release")
    job = browser.wait()
    assert job.status == 0, job.log
    assert job.command == spelled.command
    made = contents(browser.folder / "release-1" / "public")
    assert {"synthetic-1.csv", "privacy.json"} <= set(made)
    (browser.folder / "release-1").rename(tmp_path / "by-page")
    words = shlex.split(spelled.command)[1:]
    run([sys.executable, "-m", "pegsynth.cli.main", *words], browser.folder)
    assert contents(browser.folder / "release-1" / "public") == made
    (browser.folder / "release-1").rename(tmp_path / "by-command")
    run([sys.executable, "-c", spelled.code], browser.folder)
    assert contents(browser.folder / "release-1" / "public") == made


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def run(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_results_are_shown_and_downloaded(browser):
    import io
    import zipfile

    reviewed(browser)
    browser.send("/plan", epsilon="1", rows="20", method="pegs-once")
    browser.send("/release")
    assert browser.wait().status == 0
    page = browser.client.get("/results").text
    assert "differentially private with epsilon = 1" in page
    report = browser.client.get("/report/release-1")
    assert report.status == 200
    assert report.headers["content-security-policy"].startswith("sandbox")
    packed = browser.client.get("/download/release-1")
    names = zipfile.ZipFile(io.BytesIO(packed.content)).namelist()
    assert sorted(names) == sorted(p.name for p in (browser.folder / "release-1/public").iterdir())


def test_two_commands_do_not_run_at_once(browser):
    reviewed(browser)
    jobs.start(browser.folder, ("audit", "--full"))
    try:
        refused = browser.send("/release")
        assert refused.status == 400
        assert "another command of this project is running" in refused.text
    finally:
        browser.send("/stop")
    assert browser.wait().outcome == "stopped"


def test_a_project_file_of_another_kind_is_refused(browser, tmp_path):
    (tmp_path / "studio.json").write_text("[]")
    answer = browser.client.get("/table")
    assert answer.status == 400
    assert "move it away" in answer.text
    assert (tmp_path / "studio.json").read_text() == "[]"
