"""Files for catalogues and registries: what they hold, what is left out, and who can read them."""

import hashlib
import json
import re
from pathlib import Path

import jsonschema
import pytest

import pegsynth
from pegsynth.privacy import Ledger, Unspent
from pegsynth.publishing.about import NOTHING, About
from pegsynth.publishing.catalogues import croissant, dp_registry, tier_of
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.report.measures import measures
from pegsynth.schema import Feature, Schema
from small_release import small_schema, small_table

ROOT = Path(__file__).parents[2]
FIELDS = json.loads((Path(__file__).parent / "registry_fields.json").read_text())
DCAT_FIELDS = json.loads((Path(__file__).parent / "dcat_fields.json").read_text())
STATED = {
    "title": "Hospital stays 2025",
    "owner": "Office of Invented Statistics",
    "contact": "data@office.example",
    "row": "hospital stay",
    "unit": "patient",
    "purpose": "teaching",
    "why_epsilon": "agreed",
    "preprocessing": "none",
    "refresh": "none planned",
    "review_date": "2030-01-01",
    "date": "2029-01-01",
    "description": "Invented stays.",
    "licence": "https://creativecommons.org/licenses/by/4.0/",
    "url": "https://office.example/stays",
    "region": "Nowhere",
    "sector": "Healthcare",
    "owner_type": "Government",
    "keywords": ["hospital"],
}
STANDARDS = {"croissant.json", "dcat.jsonld", "dp-registry.yaml", "release.intoto.json"}


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standards") / "r"
    pegsynth.release(
        small_table(90, units=40),
        small_schema(rows_per_unit=3),
        folder=folder,
        about=STATED,
        rows=8,
        datasets=2,
        epsilon=2.0,
        delta=1e-9,
        method="pegs-once",
        public_only=True,
    )
    return folder / "public"


def facts_of(about, *, schema=None, ledger=None):
    given = ledger or Ledger(
        (Unspent.of(pegsynth.Budget(epsilon=1.0).whole("pure").amount, route="pure"),)
    )
    return Facts(
        schema or small_schema(),
        given,
        rows=5,
        datasets=1,
        table_format="csv",
        about=about,
        seeded=True,
    )


def read_yaml(text):
    """Read the YAML that we write: nested blocks, lists, and scalars as in JSON."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

    def value(number, indent):
        if number < len(lines) and lines[number].lstrip().startswith("- "):
            return sequence(number, indent)
        return mapping(number, indent)

    def depth(line):
        return len(line) - len(line.lstrip())

    def mapping(number, indent):
        found = {}
        while number < len(lines) and depth(lines[number]) == indent:
            key, _, rest = lines[number].strip().partition(":")
            if rest.strip():
                found[key] = json.loads(rest)
                number += 1
            else:
                found[key], number = value(number + 1, indent + 2)
        return found, number

    def sequence(number, indent):
        found = []
        while number < len(lines) and lines[number].startswith(" " * indent + "- "):
            rest = lines[number][indent + 2 :]
            if re.match(r"[a-z_]+: ", rest):
                lines[number] = " " * (indent + 2) + rest
                item, number = mapping(number, indent + 2)
            else:
                item, number = json.loads(rest), number + 1
            found.append(item)
        return found, number

    return mapping(0, 0)[0]


def record_of(facts):
    return read_yaml(dp_registry(facts))


# Which files there are


def test_every_release_with_a_guarantee_has_all_files_in_its_checksum_list(public):
    listed = {line.split("  ")[1] for line in (public / "SHA256SUMS").read_text().splitlines()}
    assert {*STANDARDS, "README.md"} <= listed
    readme = (public / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in listed)


def test_a_release_without_a_guarantee_exports_nothing(tmp_path):
    pegsynth.release(
        small_table(60),
        small_schema(),
        folder=tmp_path / "r",
        rows=5,
        method="bootstrap",
        public_only=True,
    )
    names = {path.name for path in (tmp_path / "r" / "public").iterdir()}
    assert not STANDARDS & names
    assert "README.md" in names


def test_l_diversity_is_no_record_for_the_registry(tmp_path):
    pegsynth.release(
        small_table(60),
        small_schema(),
        folder=tmp_path / "r",
        rows=5,
        method="pegs",
        l=1.5,
        public_only=True,
    )
    names = {path.name for path in (tmp_path / "r" / "public").iterdir()}
    assert STANDARDS & names == STANDARDS - {"dp-registry.yaml"}


# The registry


def test_the_record_has_every_field_of_the_third_tier(public):
    record = read_yaml((public / "dp-registry.yaml").read_text())
    jsonschema.validate(record, FIELDS)
    deployment = record["deployment"]
    assert deployment["administrative"]["tier"] == 3
    assert deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == 2.0
    assert deployment["privacy_loss"]["privacy_unit"] == "patient"
    unknown = {"number_of_privacy_units", "model_name_details", "trust_assumptions"} | {
        "data_source_type",
        "data_source_type_details",
        "access_type_details",
        "additional_information",
        "evidence_sources",
    }
    for part, fields in FIELDS["properties"]["deployment"]["properties"].items():
        assert set(fields["properties"]) - unknown == set(deployment[part]), part


def test_what_nobody_stated_is_left_out_and_named():
    facts = facts_of(NOTHING)
    text = dp_registry(facts)
    assert "stated by nobody: region, owner, owner_type, purpose, date" in text
    assert "Left out, because nobody stated it: row, why_epsilon" in text
    record = record_of(facts)
    assert tier_of(facts) == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(record, FIELDS)
    assert "data_curators" not in record["deployment"]["basic"]
    partly = About(**{**STATED, "refresh": "", "unit": "", "keywords": ()})
    assert tier_of(facts_of(partly)) == 2


def test_a_wrong_field_is_caught():
    """The field list has teeth: an unknown field and a wrong choice are refused."""
    for part, name, value in (("basic", "colour", "red"), ("dp_variant", "variant_name", "DP")):
        record = record_of(facts_of(About(**{**STATED, "unit": "", "keywords": ()})))
        jsonschema.validate(record, FIELDS)
        record["deployment"][part][name] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(record, FIELDS)


def test_hostile_names_stay_texts():
    names = ("a: b", '"><script>', "- x", "ü\\n", "#")
    schema = Schema(tuple(Feature(n, categories=("u", "v")) for n in names), reviewed=True)
    about = About(**{**STATED, "title": 'A "title": # - x', "unit": "", "keywords": ()})
    record = record_of(facts_of(about, schema=schema))
    jsonschema.validate(record, FIELDS)
    assert record["deployment"]["basic"]["name"] == about.title
    assert f"the features {', '.join(names)};" in record["deployment"]["dp_variant"]["data_domain"]


# Catalogues


def test_croissant_describes_the_files_that_are_there(public):
    content = json.loads((public / "croissant.json").read_text())
    for entry in content["distribution"]:
        held = (public / entry["contentUrl"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(held).hexdigest()
    header = (public / "synthetic-1.csv").read_text().splitlines()[0].split(",")
    (first, _) = content["recordSet"]
    columns = [field["source"]["extract"]["column"] for field in first["field"]]
    assert columns == header
    assert content["rai:dataUseCases"] == "teaching"
    assert "One patient" in content["rai:personalSensitiveInformation"]


def test_identifiers_of_croissant_hold_no_spaces(tmp_path):
    """mlcroissant refuses them; names of features may have them, and formulas are protected."""
    names = ("a b", "=c", "ü\u00a0x")
    schema = Schema(tuple(Feature(n, categories=("u", "v")) for n in names), reviewed=True)
    (tmp_path / "synthetic-1.csv").write_text("x")
    (records,) = croissant(facts_of(NOTHING, schema=schema), tmp_path)["recordSet"]
    found = [field["@id"] for field in records["field"]]
    assert found == ["synthetic-1/1", "synthetic-1/2", "synthetic-1/3"]
    assert [field["name"] for field in records["field"]] == list(names)
    assert records["field"][1]["source"]["extract"]["column"] == "'=c"


def test_croissant_is_read_without_an_error(public):
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    issues = mlcroissant.Dataset(public / "croissant.json").metadata.ctx.issues
    assert not issues.errors


def test_dcat_has_the_fields_of_our_list_and_no_other(public):
    content = json.loads((public / "dcat.jsonld").read_text())
    assert set(content) - {"@context", "@type"} <= set(DCAT_FIELDS["dataset"])
    assert set(DCAT_FIELDS["needed"]) <= set(content)
    for table in content["dcat:distribution"]:
        assert set(table) - {"@type"} == set(DCAT_FIELDS["distribution"])
    used = {key.partition(":")[0] for key in content if ":" in key}
    assert used <= set(content["@context"])


def test_the_statement_names_every_file_with_its_hash(public):
    content = json.loads((public / "release.intoto.json").read_text())
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {each["name"]: each["digest"]["sha256"] for each in content["subject"]}
    there = {path.name for path in public.iterdir()}
    assert set(subjects) == there - {"release.intoto.json", "SHA256SUMS"}
    for name, digest in subjects.items():
        assert hashlib.sha256((public / name).read_bytes()).hexdigest() == digest
    stated = json.loads((public / "privacy.json").read_text())["guarantee"]
    assert content["predicate"]["guarantee"] == stated


# Names of risks


def test_the_page_has_a_criterion_for_every_measure_of_risk():
    page = (ROOT / "docs" / "standards.md").read_text()
    for name, measure in measures().items():
        if measure.group == "risk":
            assert re.search(rf"\| `{name}` \| (singling out|linkability|inference)", page), name
