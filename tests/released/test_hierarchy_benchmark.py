"""The benchmark of codes under chapters runs, and its measures are what they say."""

from __future__ import annotations

from checks.bench import hierarchy
from pegsynth.codec.codec import encode


def test_a_table_is_no_distance_from_itself():
    table, schema = hierarchy.invented(500, 60)
    codes = encode(table, schema)
    found = hierarchy.Errors.of(codes, codes, schema, 0.0)
    assert found == hierarchy.Errors(0, 0, 0, 0, 0, 0)
    assert hierarchy.nested(schema)["code"].parent == "chapter"


def test_the_hierarchy_keeps_codes_in_their_chapter_and_errs_less(capsys):
    """At this size the errors differ by far more than runs do."""
    hierarchy.main(["--rows", "20000", "--codes", "300", "--runs", "1"])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    without, with_it = ([float(cell.rstrip(" |")) for cell in line[2:]] for line in lines)
    assert with_it[-1] == 0 < without[-1]
    assert with_it[2] < without[2]
