"""docs/ledger.md is what its tool writes, and explains every key that a ledger may hold."""

import json
import sys
from pathlib import Path
from typing import get_args

import pytest

import pegsynth
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.privacy.events import KnownEvent, UnitBound

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import ledger_reference

    yield ledger_reference
    sys.modules.pop("ledger_reference")


def test_the_page_is_written_by_its_tool(tool):
    assert (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8") == tool.page()


def test_every_key_of_a_ledger_is_on_the_page(tool):
    page = tool.page()
    model = pegsynth.fit(
        discharge(300, seed=1), discharge_schema(), method="pegs-once", epsilon=1.0, delta=1e-9
    )
    content = json.loads(model.ledger.to_json())
    for key in content:
        assert f"| `{key}` |" in page
    for event in content["events"]:
        section = page.partition(f"### `{event['kind']}`\n")[2].partition("\n### ")[0]
        for key in event.keys() - {"kind"}:
            assert f"| `{key}` |" in section
    for kind in get_args(KnownEvent):
        assert f"### `{kind.__struct_config__.tag}`\n" in page


def test_a_key_that_nobody_explains_is_refused(tool, monkeypatch):
    monkeypatch.delitem(tool.SHARED, "rows_per_unit")
    if "rows_per_unit" not in tool._told(UnitBound):
        with pytest.raises(ValueError, match=r"UnitBound\.rows_per_unit is explained nowhere"):
            tool.page()
