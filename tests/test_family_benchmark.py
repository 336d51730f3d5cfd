"""The benchmark over a family of tables: what is kept apart, what is marked, what is told."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from checks.bench import family
from checks.bench.invented_tables import INVENTED
from checks.bench.peers.tables import TABLES, TARGETS, load


def test_tables_for_tuning_and_for_confirming_are_apart():
    assert not set(family.TUNING) & set(family.CONFIRMING)
    assert set(family.TUNING + family.CONFIRMING) == set(TABLES) == set(TARGETS)


def test_invented_tables_are_the_same_again_and_within_their_domain():
    for name in ("stays-few", "survey-few-2", "panel-2"):
        table, again = load(name, None), load(name, None)
        assert np.array_equal(table.train, again.train)
        assert len(table.train) == INVENTED[name].rows
        assert (table.train.max(axis=0) < np.array(table.levels)).all()
        assert (table.test.max(axis=0) < np.array(table.levels)).all()


def test_columns_that_tell_each_other_are_found():
    table = load("codes-2", None)
    assert family._told("codes-2") == [(0, 1), (2, 3)]
    assert family.scores(table, table.train, with_auc=False)["told"] == 0.0
    alone = family.scores(table, family.exact_independence(table), with_auc=False)
    assert alone["told"] > 0.5
    assert alone["tvd1"] < 0.02


def test_worse_than_noisy_counts_is_marked_and_chance_told_apart():
    def cell(ours, noisy):
        return family.Cell(
            "t", 1.0, [{"tvd2": each} for each in ours], [{"tvd2": each} for each in noisy]
        )

    assert cell([0.1, 0.1], [0.2, 0.2]).mark() == ""
    assert cell([0.21, 0.2], [0.2, 0.1999]).mark() == ">"
    assert cell([0.31, 0.3], [0.2, 0.19]).mark() == ">>"


def test_page_and_comparison_of_settings(capsys):
    asked = ["--tables", "stays-few", "--epsilons", "1", "--runs", "1", "--no-auc"]
    family.main(asked)
    page = capsys.readouterr().out
    assert "Tuning tables" in page
    assert "| stays-few 800 x 20 | 1 |" in page
    assert "Confirming" not in page
    family.main([*asked, "--try", "", "--try", "rounds=0"])
    assert "what the other tables choose" in capsys.readouterr().out


def test_runs_are_kept_and_taken_up_again(tmp_path):
    path = tmp_path / "runs"
    made = iter(range(10))

    def run():
        return {"tvd2": float(next(made))}

    kept = family.Kept(path, "rounds=80")
    assert kept.runs("t", 1.0, "ours", 2, run) == [{"tvd2": 0.0}, {"tvd2": 1.0}]
    with path.open("a", encoding="utf-8") as file:
        file.write('[["t", 1.0, "ours", "rounds=80"], {"tvd2": 9')
    assert kept.runs("t", 1.0, "ours", 2, run) == [{"tvd2": 0.0}, {"tvd2": 1.0}]
    assert kept.runs("t", 10.0, "ours", 1, run) == [{"tvd2": 2.0}]
    assert family.Kept(path).runs("t", 1.0, "ours", 1, run) == [{"tvd2": 3.0}]
    assert family.Kept().runs("t", 1.0, "ours", 1, run) == [{"tvd2": 4.0}]
