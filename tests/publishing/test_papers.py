"""The papers of a release: who, when, what is promised to whom, in five languages."""

import json
import re
import string
import subprocess
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import pegsynth
from command import check_refused, pegs
from pegsynth.errors import ParameterError
from pegsynth.privacy import Guarantee, Ledger, NoisyCounts, NotPrivate, PegsDraws, UnitBound
from pegsynth.privacy import assumptions as declared
from pegsynth.privacy.events import REASONS
from pegsynth.publishing.about import NOTHING, About, release_date
from pegsynth.publishing.policy import Policy
from pegsynth.publishing.privacy_pages import (
    LANGUAGES,
    all_messages,
    certainty,
    level_of,
    privacy_page,
)
from pegsynth.schema import Feature, Schema
from small_release import small_schema, small_table

STATED = {
    "title": "Hospital stays 2025",
    "owner": "Office of Invented Statistics",
    "contact": "data@office.example",
    "row": "hospital stay",
    "unit": "patient",
    "purpose": "teaching",
}
ROWS = {key: text for key, text in STATED.items() if key != "unit"}
TABLE = small_table(90, units=40)
BY_UNIT = small_schema(rows_per_unit=3)


def released(folder, *, data=TABLE, schema=BY_UNIT, about=STATED, **options):
    asked = {"rows": 8, "epsilon": 2.0, "delta": 1e-9, "method": "pegs-once", "threads": 1}
    pegsynth.release(data, schema, folder=folder, about=about, **asked | options)
    return folder / "public"


# Messages


def places(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_no_language_lacks_a_message_or_a_place():
    for key, texts in all_messages().items():
        assert set(texts) == set(LANGUAGES), key
        assert {frozenset(places(text)) for text in texts.values()} == {
            frozenset(places(texts["en"]))
        }, key
        assert all(text.strip() for text in texts.values()), key
    unlike = [key for key, texts in all_messages().items() if texts["en"] == texts["de"]]
    assert unlike == []


def test_every_reason_and_every_assumption_has_its_message():
    source = Path(declared.__file__).read_text()
    codes = {*re.findall(r'code="([a-z-]+)"', source), *declared._STATED}
    assert len(codes) >= 17
    keys = set(all_messages())
    assert {f"assumed_{code}" for code in codes} == {
        k for k in keys if k.startswith("assumed_")
    } - {"assumed_other"}
    assert {f"reason_{code}" for code in REASONS} == {
        k for k in keys if k.startswith("reason_")
    } - {"reason_other"}


def test_every_message_is_said_somewhere():
    home = Path(pegsynth.__file__).parent / "publishing"
    files = ("privacy_pages.py", "templates/privacy.md.j2")
    source = "".join((home / name).read_text() for name in files)
    composed = ("assumed_", "reason_", "schema_", "unlisted_")
    plain = [k for k in all_messages() if not k.startswith(composed)]
    made = {"claim_pure", "claim_approximate", "level_green", "level_amber", "level_red"}
    unused = [k for k in plain if f'"{k}"' not in source and f"'{k}'" not in source]
    assert set(unused) == made


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_of_every_kind_of_promise_in_every_language(language):
    draws = PegsDraws(features=3, rows=9, alpha_numerator=40, alpha_denominator=1)
    noise = NoisyCounts.gaussian(3.0, cells=1, purpose="x")
    unit = UnitBound(rows_per_unit=4, label="person")
    assumed = [
        declared.stated("rows-in", {"rows_in": 500}),
        declared.stated("public-heads", {"features": ["a", "b"]}),
        declared.stated("feature-order"),
    ]
    ledgers = {
        "0.0740": Ledger((draws,)).assume(*assumed),
        "delta": Ledger((unit, noise), (), 1e-5),
        "none": Ledger(tuple(NotPrivate.because(code) for code in REASONS)),
    }
    policy = Policy(k=3, k_features=("a",), round_to=(("b", 5.0),))
    pages = {
        name: privacy_page(
            ledger, about=About(**STATED), date="2030-01-02", policy=policy, language=language
        )
        for name, ledger in ledgers.items()
    }
    for page in pages.values():
        assert "{" not in page
        assert all(text in page for text in ("Hospital stays 2025", "2030-01-02", "teaching"))
        assert "| 50 % |" in page or "not covered" in page.lower() or page is pages["none"]
    assert "patient" in pages["delta"]
    assert "hospital stay" in pages["0.0740"]
    assert pages["none"].count("\n- ") == len(REASONS) + 2
    if language != "en":
        assert "the random numbers" not in pages["none"]
        assert "head features" not in pages["0.0740"]


# What epsilon means


@pytest.mark.parametrize(
    ("epsilon", "delta", "level"),
    [
        (0.5, 0, "green"),
        (1, 1e-9, "green"),
        (1.01, 0, "amber"),
        (10, 0, "amber"),
        (10.1, 0, "red"),
        (1, 1e-5, "amber"),
        (None, 0, "none"),
    ],
)
def test_levels_have_public_thresholds(epsilon, delta, level):
    kind = "none" if epsilon is None else "approximate" if delta else "pure"
    assert level_of(Guarantee(kind=kind, epsilon=epsilon, delta=delta)) == level


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0, 25.0])
@pytest.mark.parametrize("suspicion", ["0.01", "0.1", "0.5"])
def test_certainty_is_rounded_up_and_near(epsilon, suspicion):
    factor, before = Fraction(Decimal(epsilon).exp()), Fraction(suspicion)
    exact = 100 * before * factor / (1 - before + before * factor)
    shown = Fraction(certainty(Decimal(suspicion), epsilon).removesuffix(" %"))
    assert shown >= exact
    assert shown - exact <= max((100 - exact) * Fraction(9, 10), Fraction(1, 10)) + Fraction(1, 10)
    assert shown <= 100


def test_the_table_of_the_docs_is_what_the_page_says():
    found = [certainty(Decimal("0.5"), e) for e in (0.1, 1.0, 3.0, 10.0, 400.0)]
    assert found == ["52.5 %", "73.2 %", "95.3 %", "99.996 %", "100 %"]


def test_the_headline_of_the_report_has_the_same_colour():
    from pegsynth.evaluation.records import Metrics
    from pegsynth.publishing.report.html import render

    for epsilon, lead in ((1.0, "lead promise"), (2.0, "lead amber"), (11.0, "lead red")):
        promised = {"kind": "pure", "epsilon": epsilon, "delta": 0.0}
        page = render(Metrics(summary={}, records=()), guarantee=promised)
        assert f'class="{lead}"' in page


# The folder


def test_a_release_bears_its_names_in_every_paper(tmp_path):
    public = released(tmp_path / "r", languages=["de", "pt"])
    privacy = (public / "PRIVACY.md").read_text()
    assert "One patient is protected, with all rows of that patient (at most 3;" in privacy
    assert "AMBER: epsilon is above 1" in privacy
    assert "Not stated by the publisher: why_epsilon, preprocessing" in privacy
    assert "Geschützt wird: patient" in (public / "PRIVACY.de.md").read_text()
    assert "O que se protege: patient" in (public / "PRIVACY.pt.md").read_text()
    readme = (public / "README.md").read_text()
    for words in ("# Hospital stays 2025", "One patient is protected", "(amber)", "pegs-once"):
        assert words in readme
    internal = tmp_path / "r" / "internal"
    signed = (internal / "sign-off.html").read_text()
    report = (internal / "report.html").read_text()
    for words in (STATED["title"], STATED["owner"], pegsynth.__version__, "pegs-once"):
        assert words in signed
        assert words in report
    for line in (public / "SHA256SUMS").read_text().splitlines():
        assert line.split("  ")[0] in signed
    assert "None was named" in signed
    assert (internal / "sign-off.html").stat().st_mode & 0o777 == 0o600
    check = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=public, capture_output=True)
    assert check.returncode == 0
    listed = {line.split("  ")[1] for line in (public / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in public.iterdir()} - {"SHA256SUMS"}
    assert all(f"`{name}`" in readme for name in listed)
    released(tmp_path / "r", force=True)


def test_a_table_says_that_it_is_synthetic(tmp_path):
    public = released(tmp_path / "r", public_only=True)
    beside = json.loads((public / "synthetic-1.csv-metadata.json").read_text())
    assert beside["dc:type"] == "synthetic data"
    assert beside["url"] == "synthetic-1.csv"
    public = released(tmp_path / "p", public_only=True, table_format="parquet")
    inside = pq.read_metadata(public / "synthetic-1.parquet").metadata
    assert inside[b"synthetic"] == b"true"
    assert b"none is that of a person" in inside[b"description"]
    assert not list(public.glob("*-metadata.json"))
    assert pegsynth.Release.load(tmp_path / "p").frames[0].height == 8


def test_a_table_with_kept_columns_does_not_say_that_all_is_synthetic(tmp_path):
    options = {"method": "cart", "synthesize": ["a"], "epsilon": None, "delta": None, "rows": None}
    public = released(
        tmp_path / "r",
        schema=small_schema(),
        data=small_table(60),
        about=ROWS,
        public_only=True,
        **options,
    )
    text = (public / "synthetic-1.csv-metadata.json").read_text()
    assert "Partly synthetic" in text
    assert "no privacy guarantee" in (public / "README.md").read_text()


def test_missing_codes_that_became_blank_are_named(tmp_path):
    data = small_table(80).with_columns(pl.Series("pay", ["-9", "5"] * 40))
    pay = Feature("pay", "numeric", edges=(0, 10), missing=("-9", "-8"), dtype="int64")
    kept = Feature("kept", categories=("5",), missing=("-9",), keep_missing_codes=True)
    schema = Schema((*small_schema().columns, pay, kept), reviewed=True)
    data = data.with_columns(kept=pl.col("pay"))
    public = released(tmp_path / "r", data=data, schema=schema, about=ROWS, public_only=True)
    for name in ("README.md", "HOW-TO-ANALYSE.md"):
        text = (public / name).read_text()
        assert "- pay: `-9`, `-8` mean that a value is missing; blank in the tables here." in text
        assert "- kept: `-9` means that a value is missing; kept as it was." in text


def test_papers_of_a_seeded_release_are_the_same_on_every_day(tmp_path, monkeypatch):
    files = []
    for day, name in ((0, "a"), (40, "b")):
        monkeypatch.setattr(
            "pegsynth.publishing.about.datetime",
            type("Clock", (), {"now": staticmethod(lambda zone, day=day: _moment(day))}),
        )
        public = released(tmp_path / name, seed=3, about=None)
        files.append({p.name: p.read_bytes() for p in public.parent.rglob("*") if p.is_file()})
    assert files[0] == files[1]


def _moment(day):
    from datetime import UTC, datetime, timedelta

    return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(days=day)


def test_where_the_date_comes_from(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert release_date(About(date="2031-02-03"), seeded=True) == "2031-02-03"
    assert release_date(NOTHING, seeded=True) == ""
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", release_date(NOTHING, seeded=False))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert release_date(NOTHING, seeded=True) == "1970-01-02"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ParameterError, match="SOURCE_DATE_EPOCH"):
        release_date(NOTHING, seeded=False)


# about.toml


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('title = "x"', "owner is missing"),
        ("title = 3", "title must be a text"),
        ('titel = "x"', "unknown key 'titel'"),
        ("title = ", "no TOML"),
        ('review_date = "soon"', "must be a day"),
        ('sector = "Fishing"', "sector is one of"),
        ('keywords = "a"', "a list of texts"),
        (f'title = "{"x" * 5000}"', "4000"),
    ],
)
def test_bad_words_of_a_publisher_are_refused(tmp_path, text, words):
    (tmp_path / "about.toml").write_text(text)
    with pytest.raises(ParameterError, match=words):
        About.of(tmp_path / "about.toml")


def test_a_unit_is_asked_for_where_there_is_one(tmp_path):
    with pytest.raises(ParameterError, match="say whom its unit column names"):
        released(tmp_path / "r", schema=BY_UNIT, about=ROWS)
    assert not (tmp_path / "r").exists()


def test_a_unit_without_a_column_is_the_publishers_statement(tmp_path):
    data = TABLE.drop("person")
    public = released(tmp_path / "r", data=data, schema=small_schema(), about=STATED)
    text = (public / "PRIVACY.md").read_text()
    assert "One patient is protected, provided that each patient has only one row" in text
    assert "no unit column enforced it" in text


def test_the_command_line_refuses_bad_papers_before_it_reads(tmp_path):
    BY_UNIT.save(tmp_path / "s.toml")
    line = ("release", tmp_path / "no.csv", "--schema", tmp_path / "s.toml", "-o", tmp_path / "r")
    flags = ("--rows", 5, "--epsilon", 1, "--method", "pegs-once")
    check_refused(pegs(*line, *flags, "--language", "de,it"), "--language takes en, de")
    check_refused(pegs(*line, *flags, "--about", tmp_path / "none.toml"), "none.toml")
