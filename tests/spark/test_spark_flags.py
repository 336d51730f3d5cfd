"""``--engine spark``: what is refused before any cluster is asked."""

from __future__ import annotations

import builtins

import pytest

from command import check_refused, done, pegs, snapshot
from small_release import small_schema, small_table

SPARK = ("--engine", "spark")
BUDGET = ("--rows", 10, "--epsilon", 1)


@pytest.fixture
def folder(tmp_path):
    small_table().write_parquet(tmp_path / "data.parquet")
    small_table().write_csv(tmp_path / "data.csv")
    small_schema().save(tmp_path / "schema.toml")
    return tmp_path


def run(command, folder, *extra, data="data.parquet", output="out.parquet"):
    table = (folder / data, "--schema", folder / "schema.toml", "-o", folder / output)
    return pegs(command, *table, *extra)


@pytest.mark.parametrize("command", ["fit", "synthesize"])
@pytest.mark.parametrize(
    ("extra", "data", "names"),
    [
        ((*SPARK, *BUDGET), "data.csv", ("reads Parquet", "csv", "--engine local")),
        (("--engine", "flink", *BUDGET), "data.parquet", ("--engine", "local, spark", "'flink'")),
        (("--master", "local", *BUDGET), "data.parquet", ("--master requires --engine spark",)),
        ((*SPARK, *BUDGET, "--resume", "x"), "data.parquet", ("--resume", "--engine local")),
        ((*SPARK, "--rows", 9, "--method", "mi"), "data.parquet", ("--method mi", "pegs-once")),
        (
            (*SPARK, *BUDGET, "--method", "pegs-capped", "--urn"),
            "data.parquet",
            ("--urn", "on Spark"),
        ),
        (
            (*SPARK, *BUDGET, "--method", "pegs", "--seed-pool", "original"),
            "data.parquet",
            ("original seed rows", "--engine local"),
        ),
        ((*SPARK, *BUDGET, "--table", "t"), "data.parquet", ("--table",)),
    ],
)
def test_what_a_cluster_cannot_do(command, extra, data, names, folder):
    before = snapshot(folder)
    check_refused(run(command, folder, *extra, data=data), *names)
    assert snapshot(folder) == before


def test_databases_are_read_here(folder):
    address = f"sqlite:///{folder}/x.db"
    table = (address, "--table", "t", "--schema", folder / "schema.toml")
    refused = pegs("fit", *table, "-o", folder / "m.pegs", *BUDGET, *SPARK)
    check_refused(refused, "--engine local")


def test_drawing_on_one_machine(folder):
    once = ("--method", "pegs-once", *BUDGET, *SPARK)
    check_refused(run("synthesize", folder, *once), "pegs-once", "--engine local")
    model = folder / "m.pegs"
    done("fit", folder / "data.parquet", "--schema", folder / "schema.toml", "-o", model, *BUDGET,
         "--method", "pegs-once")  # fmt: skip
    refused = pegs("sample", model, "--rows", 5, "-o", folder / "out.parquet", *SPARK)
    check_refused(refused, "pegs-once", "--engine local")


def test_outputs_elsewhere_need_a_ledger_here(folder):
    for output in ("hdfs://host/out", "s3a://bucket/out"):
        table = (folder / "data.parquet", "--schema", folder / "schema.toml", "-o", output)
        check_refused(pegs("synthesize", *table, *BUDGET, *SPARK), output, "--ledger")
    address = "s3a://key:secret@bucket/out"
    table = (folder / "data.parquet", "--schema", folder / "schema.toml", "-o", address)
    refused = pegs("synthesize", *table, *BUDGET, *SPARK)
    check_refused(refused, "password or key")
    assert "secret" not in refused.err


def test_without_pyspark_there_is_a_way_out(folder, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest):
        if name.split(".")[0] == "pyspark":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    check_refused(run("fit", folder, *BUDGET, "--method", "pegs", *SPARK), "pegsynth[spark]")
