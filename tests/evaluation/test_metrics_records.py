import json

import pytest

from pegsynth.errors import ModelError, ParameterError
from pegsynth.evaluation import Marginal, Metrics, Record


def example():
    return Metrics(
        summary={"tvd1": 0.25, "regression_distance": None},
        records=(
            Record(name="tvd1", subject="", value=0.25, baseline=0.1, n=10, note="a note"),
            Record(name="auc", subject='a "b" <c>', value=float("nan"), better="higher"),
        ),
        marginals=(
            Marginal(
                feature="sex",
                label="",
                categories=("f", "m"),
                original=(0.5, 0.5),
                synthetic=(1.0, 0.0),
            ),
        ),
    )


def test_the_file_has_the_documented_shape():
    content = json.loads(example().to_json())
    parts = ["format", "summary", "verdict", "records", "marginals", "distributions"]
    assert list(content) == parts
    assert content["format"] == 1
    assert content["summary"] == {"tvd1": 0.25, "regression_distance": None}
    figures = ["value", "low", "high", "baseline"]
    keys = ["name", "subject", *figures, "better", "n", "note", "no_power"]
    assert [list(record) for record in content["records"]] == [keys, keys]
    assert content["records"][1]["value"] is None


def test_round_trip():
    metrics = example()
    assert Metrics.from_json(metrics.to_json()) == metrics
    assert Metrics.from_json(metrics.to_json().encode()).to_json() == metrics.to_json()


def test_a_file_of_before_attacks_had_power_is_read():
    content = json.loads(example().to_json())
    for record in content["records"]:
        del record["no_power"]
    assert Metrics.from_json(json.dumps(content)) == example()


def test_nan_is_none_and_infinity_is_refused():
    assert Record(name="a", subject="", value=float("nan")).value is None
    assert Metrics(summary={"a": float("nan")}, records=()).summary == {"a": None}
    with pytest.raises(ParameterError, match="infinite"):
        Record(name="a", subject="", value=float("inf"))
    with pytest.raises(ParameterError, match="infinite"):
        Metrics(summary={"a": float("-inf")}, records=())


def test_records_are_found_by_name_and_subject():
    assert example().record("tvd1").value == 0.25
    assert example().record("tvd1", "sex") is None


def test_keys_of_later_versions_are_passed_over():
    content = json.loads(example().to_json()) | {"coefficients": [1, 2]}
    assert Metrics.from_json(json.dumps(content)) == example()


GOOD_RECORD = '{"name": "a", "subject": "", "value": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"summary": {}, "records": []}',
        '{"format": 1, "summary": {}}',
        '{"format": 1, "summary": {}, "records": [',
        '{"format": 2, "summary": {}, "records": []}',
        '{"format": "1", "summary": {}, "records": []}',
        '{"format": 1, "summary": {"a": "text"}, "records": []}',
        '{"format": 1, "summary": {"a": 1e999}, "records": []}',
        '{"format": 1, "summary": {"a": NaN}, "records": []}',
        '{"format": 1, "summary": {}, "records": [{"name": "a", "subject": ""}]}',
        f'{{"format": 1, "summary": {{}}, "records": [{GOOD_RECORD[:-1]}, "better": "none"}}]}}',
        f'{{"format": 1, "summary": {{}}, "records": [{GOOD_RECORD[:-1]}, "n": 1.5}}]}}',
        '{"format": 1, "summary": {}, "records": [], "marginals": [{"feature": "a", "label": "", '
        '"categories": ["x"], "original": [], "synthetic": []}]}',
        '{"format": 1, "summary": {}, "records": [], "marginals": [{"feature": "a", "label": "", '
        '"categories": ["x"], "original": [-1e300], "synthetic": [1]}]}',
        '{"format": 1, "summary": {}, "records": [], "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        b'{"format": 1, "summary": {"\xff": 1}, "records": []}',
        '{"format": 1, "summary": {"\\ud800": 1}, "records": []}',
        '{"format": 1, "summary": {"\ud800": 1}, "records": []}',
        b"PAR1",
    ],
)
def test_hostile_files_end_in_one_error(text):
    with pytest.raises(ModelError, match=r"^internal/metrics\.json: not metrics"):
        Metrics.from_json(text, source="internal/metrics.json")
