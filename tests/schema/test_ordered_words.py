"""Words and brackets whose order everybody knows, and texts that only look like them."""

import random

import polars as pl
import pytest

from pegsynth.schema import Schema
from pegsynth.schema.words import in_order

ORDERED = [
    ("Low", "Medium", "High"),
    ("Minor", "Moderate", "Major", "Extreme"),
    ("None", "Mild", "Severe"),
    ("Normal", "High", "Very High"),
    ("never", "rarely", "sometimes", "most of time", "always"),
    ("nie", "selten", "oft", "immer"),
    ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"),
    ("very_dissatisfied", "dissatisfied", "satisfied", "very_satisfied"),
    ("poor", "fair", "good", "very good", "excellent"),
    ("lessHS", "HS", "somePS", "college", "bachelors", "higher"),
    ("1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree"),
    ("none", "ged", "highschool", "bachelor", "master", "phd", "other"),
    ("too little", "about right", "too much"),
    ("S", "M", "L", "XL"),
    ("I", "II", "III", "IV"),
    ("Jan", "Feb", "Mar", "Dec"),
    ("monday", "tuesday", "friday"),
    ("[0-10)", "[10-20)", "[20-30)", "[90-100)"),
    ("(0, 1]", "(1, 2.5]", "(2.5, 10]"),
    ("<5", "5-17", "18-64", "65-84", "85+"),
    ("0 to 17", "18 to 29", "30 to 49", "70 or Older"),
    ("under 18", "18 to 24", "65 and over"),
    ("$0-$9,999", "$10,000-$19,999", "$20,000+"),
    ("0-9k", "10-19k", "20k+"),
    ("never", "1-4 per day", "5-9 per day", "60+ per day"),
    ("did not drive", "0", "1-2", "3-5", "10-19"),
    ("emp_lt_1", "emp_1", "emp_2", "emp_ge_10", "emp_unk"),
    ("<=20", "20-40", ">40"),
    ("1985-1989", "1990-1994", "1995-1998"),
    ("1\u20132", "3\u20135", "6 or more"),
]
UNORDERED = [
    ("red", "green", "blue"),
    ("Low", "High"),
    ("yes", "no", "other"),
    ("A", "B", "C", "D"),
    ("1", "2", "3"),
    ("low", "minor", "high"),
    ("low", "medium", "red", "blue"),
    ("001-139", "140-239", "240-279"),
    ("17-336", "17-337", "18-222"),
    ("777-232", "A319", "747-451"),
    ("2020-01", "2020-02", "2020-03"),
    ("0-10", "5-15", "15-20"),
    ("0-9 years", "10-19 miles", "20+ years"),
    ("Fold01", "Fold02", "Fold03"),
    ("", "", ""),
    ("9" * 400, "1-2", "3-" + "4" * 100_000),
]


@pytest.mark.parametrize("texts", ORDERED, ids=str)
def test_known_orders(texts):
    for seed in range(5):
        mixed = random.Random(seed).sample(texts, len(texts))
        assert in_order(mixed) == texts


@pytest.mark.parametrize("texts", UNORDERED, ids=lambda texts: str(texts)[:60])
def test_no_order_is_made_up(texts):
    assert in_order(texts) is None


def test_a_draft_lists_them_in_order(tmp_path):
    ages = [f"[{age}-{age + 10})" for age in range(0, 120, 10)]
    frame = pl.DataFrame({"age": ages * 10, "severity": ["Minor", "Major", "Moderate"] * 40})
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame, frame.to_pandas(), tmp_path / "t.csv"):
        schema = Schema.draft(data)
        assert (schema["age"].kind, schema["age"].categories) == ("ordinal", tuple(ages))
        assert schema["severity"].categories == ("Minor", "Moderate", "Major")
