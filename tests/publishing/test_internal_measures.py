"""What ``internal/`` of a release holds: every measure of utility and of risk."""

from pegsynth.datasets import discharge, discharge_schema
from pegsynth.evaluation import Metrics
from pegsynth.evaluation.measuring import HEADLINES
from pegsynth.privacy import Ledger
from pegsynth.publishing.fill_folder import write_internal
from pegsynth.tables.table_input import open_table


def test_utility_and_risk_are_measured(tmp_path):
    original = discharge(600, seed=1)
    files = []
    for number in (1, 2):
        files.append(tmp_path / f"synthetic-{number}.parquet")
        original.sample(300, with_replacement=True, seed=number).write_parquet(files[-1])
    ledger = Ledger(())
    write_internal(tmp_path, open_table(original), discharge_schema(), ledger, files, threads=2)
    found = Metrics.from_json((tmp_path / "internal" / "metrics.json").read_bytes())
    # Without a hold-out nobody can be told to have been a member; no target was named.
    absent = {name for name, value in found.summary.items() if value is None}
    assert absent == {"auc_synthetic", "membership_auc"}
    assert set(HEADLINES) <= set(found.summary)
    formula = "charge ~ age.yrs + sev + cat + los"
    assert found.record("coefficient", f"{formula} :: los").value is not None
    assert {path.name for path in (tmp_path / "internal").iterdir()} == {
        "metrics.json",
        "report.html",
    }
    assert not list(tmp_path.rglob("*per-record*"))
