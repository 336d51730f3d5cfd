"""Twenty codebooks of others, six of them public Stata files: read, given to others, read again."""

import json
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

from checks.fuzz.office import sas_sample
from pegsynth.schema.codebooks import WRITTEN, read_codebook, write_codebook

pyreadstat = pytest.importorskip("pyreadstat")

ENDING = {"ddi": "xml"}
STATSMODELS = (
    "datasets/macrodata/macrodata.dta",
    "iolib/tests/results/data_missing.dta",
    "iolib/tests/results/time_series_examples.dta",
    "sandbox/regression/tests/griliches76.dta",
    "tsa/statespace/tests/results/manufac.dta",
    "tsa/tests/results/lutkepohl2.dta",
)
FRAME = pl.DataFrame({"sex": [1.0, -9.0], "area": ["01", "02"], "age": [5.0, 50.0]})
LABELS = {"sex": {1: "male", 2: "female", -9: "refused", -8: "not asked"}}
DDI = """<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var name="sex"><labl>Sex</labl><catgry><catValu>1</catValu><labl>male</labl></catgry>
<catgry><catValu>2</catValu><labl>female</labl></catgry>
<catgry missing="Y"><catValu>-9</catValu><labl>refused</labl></catgry></var>
<var name="age" intrvl="contin"><valrng><range min="0" max="120"/></valrng></var>
</dataDscr></codeBook>"""
TEXTS = {
    "ddi.xml": DDI,
    "frictionless.json": {
        "fields": [
            {"name": "sex", "type": "integer", "constraints": {"enum": [1, 2]}},
            {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 120}},
        ],
        "missingValues": ["", "-9"],
    },
    "package.json": {
        "resources": [{"schema": {"fields": [{"name": "x", "constraints": {"enum": ["01", "1"]}}]}}]
    },
    "csvw.json": {
        "tableSchema": {
            "columns": [
                {"name": "x", "datatype": {"format": "^(a|b)$"}, "null": ["", "NA"]},
                {"name": "n", "datatype": {"base": "integer", "minimum": 0, "maximum": 300}},
            ]
        }
    },
    "sdv.json": {
        "columns": {
            "k": {"sdtype": "id"},
            "flag": {"sdtype": "boolean"},
            "n": {"sdtype": "numerical"},
        }
    },
    "sdv-tables.json": {"tables": {"t": {"columns": {"x": {"sdtype": "boolean"}}}}},
    "mbi.json": {"age": 85, "sex": 2, "race": 5},
    "nist.json": {
        "PUMA": {"description": "area", "values": {"25-01": "A", "25-02": "B", "N": "none"}},
        "AGEP": {"description": "age", "values": {"0 .. 9": "years"}},
    },
    "domain.json": {"x": {"possible_values": ["a", "b", 3]}, "n": {"min_value": 0, "max_value": 1}},
    "codes.csv": "code;label\n01;eins\n02;zwei\n-9;verweigert\n",
}
MADE = ("made.sav", "made.zsav", "made.dta", "iris.sas7bdat")
NAMES = (*STATSMODELS, *TEXTS, *MADE)


def book(folder, name):
    """Write a codebook, or find it in the package that has it."""
    path = folder / name
    if name in STATSMODELS:
        spec = find_spec("statsmodels")
        return Path(next(iter(spec.submodule_search_locations)), name)
    if name in TEXTS:
        content = TEXTS[name]
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    elif name.endswith("sas7bdat"):
        path.write_bytes(sas_sample())
    elif name.endswith("dta"):
        pyreadstat.write_dta(FRAME, path, variable_value_labels=LABELS)
    else:
        ranges = {"sex": [-9, -8]}
        pyreadstat.write_sav(
            FRAME,
            path,
            variable_value_labels=LABELS,
            missing_ranges=ranges,
            compress=name.endswith("zsav"),
        )
    return path


def told(schema):
    """What every program has to hand on: codes, codes that mean missing, and their labels."""
    return {
        each.name: (
            each.categories,
            each.missing,
            {code: text for code, text in each.value_labels if text != code},
        )
        for each in schema.features
        if each.categories
    }


def test_there_are_twenty():
    assert len(set(NAMES)) == 20


@pytest.mark.parametrize("name", NAMES)
def test_what_a_codebook_tells_survives_every_way_out(tmp_path, name):
    feature = "area" if name == "codes.csv" else None
    first = read_codebook(book(tmp_path, name), feature=feature)
    assert first.drafted_from_data == ()
    assert not first.reviewed
    for form in WRITTEN:
        path = tmp_path / f"{form}.{ENDING.get(form, 'json')}"
        path.write_text(write_codebook(first, form), encoding="utf-8")
        back = read_codebook(path)
        assert told(back) == told(first), form
        # What it leaves open stays open: a list or a limit is never made up.
        for each in first.features:
            again = back[each.name]
            assert again.private_categories == each.private_categories, (form, each.name)
            assert again.private_edges == each.private_edges, (form, each.name)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("made.sav", {"", "-8", "-9"}), ("made.zsav", {"", "-8", "-9"}), ("ddi.xml", {"", "-9"})],
)
def test_user_missing_codes_survive(tmp_path, name, missing):
    found = read_codebook(book(tmp_path, name))["sex"]
    assert set(found.missing) == missing
    assert found.categories == ("1", "2")
    assert dict(found.value_labels)["-9"] == "refused"
