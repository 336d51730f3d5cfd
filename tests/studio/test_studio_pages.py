"""What the forms of the studio do, without a browser; each is what a command would do."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile

import polars as pl
import pytest
from filling_in import Filler
from running import in_process, write_table

from pegsynth.schema import Schema
from pegsynth.storage.book.book_file import read_book
from pegsynth.studio import jobs
from pegsynth.studio.project import Project


@pytest.fixture
def browser(tmp_path):
    with in_process(write_table(tmp_path)) as client:
        yield Filler(tmp_path, client)


def test_rows_are_not_shown_before_the_user_says_so(browser):
    refused = browser.send("/table", data="stays.csv", how="rows")
    assert refused.status == 400
    assert "say that you may see them" in refused.text
    browser.send("/table", data="stays.csv", how="private")
    assert browser.wait().status == 0
    pages = [browser.client.get(path).text for path in ("/table", "/codebook", "/codebook/1")]
    assert not any("marker" in page for page in pages)
    assert Schema.load(browser.folder / "schema.toml")["ward"].private_categories
    # What is measured costs anew each time, so there is nothing to go on from.
    assert 'name="resume"' not in browser.client.get("/release").text
    browser.drafted()
    assert 'name="resume"' in browser.client.get("/release").text


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
    browser.reviewed()
    browser.send("/codebook", what="bulk", role="quasi-identifier", chosen=["sex", "q0"])
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
        ({"what": "bulk", "role": "other"}, "tick the columns"),
        ({"what": "bulk", "chosen": "sex"}, "say what should be changed"),
        ({"what": "unit", "unit": "", "time": "ward"}, "name the column of the person"),
        ({"what": "unit", "unit": "sex", "time": "ward", "rows_per_unit": "2"}, "ward"),
        ({"what": "rule", "feature_a": "sex", "values_a": "f"}, "a rule names two columns"),
        ({"what": "suggestion", "do": "accept", "name": "sex", "place": "9"}, "no such suggestion"),
        ({"what": "suggestion", "do": "burn", "name": "sex", "place": "0"}, "accepted or dismiss"),
        ({"what": "feature", "name": "sex", "role": "other", "top": "ten"}, "top is a number"),
        (
            {"what": "feature", "name": "sex", "role": "other", "hierarchy": "none.csv"},
            "none.csv",
        ),
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
    browser.reviewed()
    (browser.folder / "stays.csv").unlink()
    answer = browser.send("/plan", epsilon="2", delta="1e-9", rows="100", method="auto")
    assert answer.status == 200
    assert "pegs-once" in answer.text
    assert "What this epsilon means" in answer.text


@pytest.mark.parametrize(("name", "text"), [("epsilon", "much"), ("rows", "1.5")])
def test_a_plan_that_cannot_be_says_why(browser, name, text):
    browser.reviewed()
    answer = browser.send("/plan", **{"epsilon": "1", "rows": "10", name: text})
    assert answer.status == 400
    assert "number" in answer.text


@pytest.mark.slow(seconds=25)
def test_a_release_is_booked_shown_downloaded_and_compared(browser):
    folder, client = browser.folder, browser.client
    browser.drafted()
    browser.send("/codebook", what="bulk", role="quasi-identifier", chosen=["sex", "q0"])
    browser.send("/codebook", what="review", reviewer="R", declared="yes")
    browser.send("/plan", epsilon="1", delta="1e-9", rows="20", method="pegs-once")
    made = browser.send(
        "/book", do="create", book="stays.book", book_epsilon="1.5", book_delta="1e-6", step="plan"
    )
    assert "Epsilon 1 is covered" in made.text
    browser.send("/release")
    job = browser.wait()
    assert job.status == 0, job.log
    assert "--book stays.book" in job.command
    assert len(read_book(folder / "stays.book").entries) == 1
    page = client.get("/plan").text
    assert "of 1.5 is spent in all" in page
    assert "settled" in page
    browser.send("/plan", epsilon="1.4", rows="20", method="pegs-once")
    assert "Epsilon 1.4 is not covered" in client.get("/plan").text

    page = client.get("/results").text
    assert "differentially private with epsilon = 1" in page
    for path in ("/report/release-1", "/sign-off/release-1"):
        shown = client.get(path)
        assert shown.status == 200
        assert shown.headers["content-security-policy"].startswith("sandbox")
    packed = client.get("/download/release-1")
    names = zipfile.ZipFile(io.BytesIO(packed.content)).namelist()
    assert sorted(names) == sorted(file.name for file in (folder / "release-1/public").iterdir())

    assert "tick at least two" in browser.send("/compare", chosen="release-1", step="results").text
    shutil.copytree(folder / "release-1", folder / "release-2")
    browser.send("/compare", chosen=["release-1", "release-2"], step="results")
    assert browser.wait().status == 0
    page = client.get("/results").text
    assert "Open the comparison" in page
    assert client.get("/comparison").status == 200
    name = page.partition('src="/comparison/')[2].partition('"')[0]
    assert client.get(f"/comparison/{name}").headers["content-type"].startswith("image/svg")
    assert client.get("/comparison/none").status == 404

    Project.open(folder).changed(may_see=False)
    page = client.get("/results").text
    assert "I may see values of this table" in page
    assert "/report/" not in page
    for path in ("/report/release-1", "/sign-off/release-1", "/comparison"):
        assert client.get(path).status == 403
    assert client.get(f"/comparison/{name}").status == 404
    assert browser.send("/compare", chosen=["release-1", "release-2"]).status == 400
    assert "/report/release-1" in browser.send("/allow", step="results", may_see="yes").text


def test_a_release_that_fails_tells_what_the_book_now_holds(browser):
    folder, client = browser.folder, browser.client
    browser.drafted()
    browser.send("/codebook", what="review", reviewer="R", declared="yes")
    browser.send("/plan", epsilon="1", rows="20", method="pegs-once")
    browser.send("/book", do="create", book="stays.book", book_epsilon="1.5", step="plan")
    table = (folder / "stays.csv").read_text()
    header, _, rows = table.partition("\n")
    for text, told in (
        (
            f"{header},more\n{rows}",
            "nothing is charged, because no row was read; epsilon = 0 of 1.5",
        ),
        (
            f"{header}\nodd\n{rows}",
            "charged in full, because rows were or may have been read; epsi",
        ),
    ):
        (folder / "stays.csv").write_text(text)
        browser.send("/release")
        job = browser.wait()
        assert job.status == 2, job.log
        assert told in job.log.splitlines()[-1]
        page = client.get("/release").text
        assert told in page
    assert "into the book stays.book: epsilon = 1 of 1.5 is spent in all." in page


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"do": "use", "book": ""}, "name the file"),
        ({"do": "use", "book": "none.book"}, "there is no such book"),
        ({"do": "create", "book": "b.book"}, "needs a limit"),
        ({"do": "create", "book": "b.book", "book_epsilon": "much"}, "are numbers"),
        ({"do": "create", "book": "stays.csv", "book_epsilon": "1"}, "stays.csv"),
    ],
)
def test_a_book_that_cannot_be_is_refused(browser, fields, told):
    browser.drafted()
    browser.client.get("/plan")
    before = sorted(file.name for file in browser.folder.iterdir())
    answer = browser.send("/book", step="plan", **fields)
    assert answer.status == 400
    assert told in answer.text
    assert sorted(file.name for file in browser.folder.iterdir()) == before
    assert "No book is named" in answer.text


@pytest.mark.parametrize(
    ("policy", "choices", "told"),
    [
        ({"book_epsilon": "2"}, {"delta": "1e-9"}, "takes runs without a delta only"),
        ({"book_epsilon": "2"}, {}, "Epsilon 1 is covered"),
        ({"book_epsilon": "2"}, {"seed": "3"}, "a seed has no guarantee"),
        ({"book_epsilon": "0.5"}, {}, "Epsilon 1 is not covered"),
    ],
    ids=["delta", "covered", "seed", "too much"],
)
def test_the_book_says_whether_the_plan_is_covered(browser, policy, choices, told):
    browser.drafted()
    browser.send("/plan", epsilon="1", rows="20", **choices)
    page = browser.send("/book", do="create", book="b.book", step="plan", **policy).text
    assert told in page
    assert "pegs book show b.book" in page
    (browser.folder / "b.book").write_text("torn")
    assert "b.book" in browser.client.get("/plan").text
    assert "No book is named" in browser.send("/book", do="without").text


@pytest.mark.slow
def test_rows_are_counted_only_for_those_who_may_see_them(browser):
    browser.drafted()
    schema = Schema.load(browser.folder / "schema.toml").with_feature("ward", categories=("b",))
    schema.save(browser.folder / "schema.toml")
    Project.open(browser.folder).changed(may_see=False)
    assert browser.send("/count", step="codebook").status == 400
    assert "Count rows" not in browser.client.get("/codebook").text
    Project.open(browser.folder).changed(may_see=True)
    browser.send("/count", step="codebook")
    job = browser.wait()
    assert job.status == 0, job.log
    page = browser.client.get("/codebook/1").text
    assert "A release would refuse the table for 200 of them" in page
    assert "<rect" in page
    assert "refused rows" in browser.client.get("/codebook").text
    Project.open(browser.folder).changed(may_see=False)
    assert "<rect" not in browser.client.get("/codebook/1").text


@pytest.mark.slow
def test_a_database_is_a_table(browser):
    with sqlite3.connect(browser.folder / "stays.db") as base:
        base.execute("create table stays (sex text, ward text, q0 text)")
        rows = pl.read_csv(browser.folder / "stays.csv").rows()
        base.executemany("insert into stays values (?, ?, ?)", rows)
    address = f"sqlite:///{browser.folder / 'stays.db'}"
    browser.send("/table", data=address, table="stays", how="rows", may_see="yes")
    job = browser.wait()
    assert job.status == 0, job.log
    assert Schema.load(browser.folder / "schema.toml").names == ("sex", "ward", "q0")
    assert "--table stays" in browser.client.get("/release").text


def test_a_codebook_alone_makes_a_plan(browser):
    fields = [
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
        {"name": "ward", "type": "string", "constraints": {"enum": ["a", "b"]}},
    ]
    told = {"resources": [{"name": "stays", "path": "x.csv", "schema": {"fields": fields}}]}
    (browser.folder / "datapackage.json").write_text(json.dumps(told))
    browser.send("/table", how="codebook", codebook="datapackage.json")
    job = browser.wait()
    assert job.status == 0, job.log
    browser.send("/codebook", what="review", reviewer="R", declared="yes")
    assert "pegs-once" in browser.send("/plan", epsilon="1", rows="10").text
    assert "A release needs a" in browser.client.get("/release").text


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.csv", b""), ("torn.parquet", b"PAR1 torn"), ("notes.docx", b"PK\x03\x04 words")],
)
def test_wrong_files_are_refused_in_words(browser, name, content):
    browser.client.hand_over(name, content, how="rows", may_see="yes")
    job = browser.wait()
    page = browser.client.get("/table").text
    assert job.status == 2, job.log
    assert "Last command: refused" in page
    assert f"table-{name}" in page
    assert "Traceback" not in page
    assert "internal error" not in page
    assert not (browser.folder / "schema.toml").exists()


def test_a_codebook_that_is_torn_can_be_mended(browser):
    browser.drafted()
    text = (browser.folder / "schema.toml").read_text()
    (browser.folder / "schema.toml").write_text(text.replace("[[features]]", "[[features", 1))
    page = browser.client.get("/codebook").text
    assert "cannot be read" in page
    for path in ("/table", "/plan", "/release", "/results", "/codebook/0"):
        assert browser.client.get(path).status in (200, 303)
    assert browser.send("/codebook", what="text", text=text).status == 200
    assert "Columns" in browser.client.get("/codebook").text


def test_what_was_typed_stays_when_it_is_refused(browser):
    browser.drafted()
    answer = browser.send(
        "/codebook", what="feature", name="ward", role="other", kind="nominal", edges="a b"
    )
    assert answer.status == 400
    assert 'value="a b"' in answer.text
    assert "<h1>ward</h1>" in answer.text


def test_two_commands_do_not_run_at_once(browser):
    browser.reviewed()
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
