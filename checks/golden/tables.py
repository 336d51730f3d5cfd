"""The tables and schemas that cases use, made here so that nothing inside the program is needed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ROWS = 300

PLAIN = """
reviewed = true
[[features]]
name = "a"
role = "quasi-identifier"
categories = ["x", "y", "z"]
[[features]]
name = "b"
role = "quasi-identifier"
categories = ["p", "q"]
missing = [""]
[[features]]
name = "s"
kind = "ordinal"
dtype = "int64"
categories = ["1", "2", "3"]
value_labels = { 1 = "low", 2 = "middle", 3 = "high" }
[[features]]
name = "n"
kind = "numeric"
dtype = "double"
edges = [0, 10, 20, 50]
missing = [""]
[[features]]
name = "d"
role = "sensitive"
categories = ["no", "yes"]
[[rules]]
label = "no x with yes"
forbid = { a = ["x"], d = ["yes"] }
"""

DECLARED = """
[[analyses]]
formula = "n ~ C(a) + s"
share = 0.1
[[analyses]]
formula = "I(d == 'yes') ~ s"
family = "binomial"
share = 0.1
[[tables_wanted]]
features = ["a", "b"]
share = 0.1
"""

MEASURED = """
reviewed = true
[[features]]
name = "a"
categories = "private"
[[features]]
name = "b"
categories = ["p", "q"]
missing = [""]
[[features]]
name = "s"
kind = "ordinal"
dtype = "int64"
categories = ["1", "2", "3"]
[[features]]
name = "n"
kind = "numeric"
dtype = "double"
edges = "private"
lowest = 0
highest = 50
missing = [""]
[[features]]
name = "d"
categories = ["no", "yes"]
"""

DATES = """
reviewed = true
[[features]]
name = "admitted"
kind = "date"
format = "%d.%m.%Y"
edges = "private"
lowest = "2020-01-01"
highest = "2023-12-31"
weekday = true
missing = [""]
[[features]]
name = "discharged"
kind = "date"
format = "%d.%m.%Y"
after = "admitted"
edges = [0, 1, 3, 7, 30]
missing = [""]
[[features]]
name = "born"
kind = "date"
edges = "year"
lowest = "1940-01-01"
highest = "1999-12-31"
[[features]]
name = "seen"
kind = "datetime"
resolution = "minute"
edges = "month"
lowest = "2020-01-01"
highest = "2024-01-01"
[[features]]
name = "clock"
kind = "time"
edges = "hour"
lowest = "00:00:00"
highest = "23:59:59"
[[features]]
name = "ward"
categories = ["a", "b", "c"]
"""

RECODED = """
reviewed = true
[[features]]
name = "age"
kind = "numeric"
dtype = "int64"
edges = [0, 18, 40, 65, 110]
top = 90
round = 5
[[features]]
name = "diagnosis"
hierarchy = "icd.csv"
level = 1
[[features]]
name = "procedure"
categories = ["3611", "3612", "3620", "1301", "1302"]
hierarchy = "prefix:3"
groups = { heart = ["361", "362"], eye = ["130"] }
[[features]]
name = "procedure_text"
label_of = "procedure"
value_labels = { heart = "of the heart", eye = "of the eye" }
[[features]]
name = "town"
categories = ["A", "B", "C", "D", "E", "F"]
rare = "paid"
[[features]]
name = "remarks"
role = "drop"
"""

UNITS = (
    PLAIN.replace(
        "reviewed = true\n", 'reviewed = true\n[table]\nunit = "person"\nrows_per_unit = 2\n'
    )
    + '[[features]]\nname = "person"\nrole = "identifier"\n'
)

PANEL = """
reviewed = true
[panel]
unit = "person"
time = "year"
most = {most}
fixed = ["sex"]
{more}
[[features]]
name = "person"
role = "identifier"
[[features]]
name = "year"
kind = "numeric"
dtype = "int64"
edges = [2000, 2005, 2010, 2020]
[[features]]
name = "sex"
categories = ["f", "m"]
[[features]]
name = "job"
categories = ["none", "part", "full"]
"""

PAIR = """
reviewed = true
[[tables]]
name = "households"
key = "household"
features = ["region", "rooms"]
[[tables]]
name = "persons"
key = "household"
order = "relation"
most = 3
[[features]]
name = "household"
role = "identifier"
[[features]]
name = "region"
categories = ["north", "south"]
[[features]]
name = "rooms"
kind = "ordinal"
dtype = "int64"
categories = ["1", "2", "3"]
[[features]]
name = "relation"
kind = "ordinal"
categories = ["head", "partner", "child"]
[[features]]
name = "sex"
categories = ["f", "m"]
"""


def plain(rows: int = ROWS, seed: int = 1) -> pl.DataFrame:
    """Return dependent columns with missing values, some rows breaking the rule."""
    words = np.random.default_rng(seed)
    first = words.integers(0, 3, rows)
    last = (first > 0) ^ (words.random(rows) < 0.2)
    second = (first + words.integers(0, 2, rows)) % 3
    number = np.round(10 * first + 20 * words.random(rows), 1)
    return pl.DataFrame(
        {
            "a": [("x", "y", "z")[i] for i in first],
            "b": [("p", "q", None)[i] for i in second],
            "s": words.integers(1, 4, rows),
            "n": [None if words.random() < 0.1 else float(x) for x in number],
            "d": [("no", "yes")[int(i)] for i in last],
        }
    )


def units() -> pl.DataFrame:
    """Return the plain table with a column of people who have several rows."""
    people = np.random.default_rng(2).integers(0, 120, ROWS)
    return plain().with_columns(pl.Series("person", people))


def dated() -> pl.DataFrame:
    """Return dates, moments and times of day."""
    words = np.random.default_rng(3)
    first = dt.date(2020, 1, 1)
    days = [first + dt.timedelta(int(i)) for i in words.integers(0, 1400, ROWS)]
    stays = words.integers(0, 12, ROWS)
    born = [dt.date(1940 + int(y), 1 + int(m), 5) for y, m in words.integers(0, 12, (ROWS, 2))]
    minutes = [int(i) for i in words.integers(0, 1440, ROWS)]
    known = words.random(ROWS) > 0.1
    midnight = dt.time()
    moments = [
        dt.datetime.combine(day, midnight) + dt.timedelta(minutes=minute)
        for day, minute in zip(days, minutes, strict=True)
    ]
    leaving = [day + dt.timedelta(int(stay)) for day, stay in zip(days, stays, strict=True)]
    return pl.DataFrame(
        {
            "admitted": [f"{day:%d.%m.%Y}" for day in days],
            "discharged": [
                f"{day:%d.%m.%Y}" if there else None
                for day, there in zip(leaving, known, strict=True)
            ],
            "born": born,
            "seen": moments,
            "clock": [moment.time() for moment in moments],
            "ward": [("a", "b", "c")[i % 3] for i in minutes],
        }
    )


def recoded() -> pl.DataFrame:
    """Return codes and numbers that the schema makes coarser."""
    words = np.random.default_rng(4)
    codes = words.integers(0, 4, ROWS)
    procedures = ("3611", "3612", "3620", "1301", "1302")
    return pl.DataFrame(
        {
            "age": words.integers(0, 100, ROWS),
            "diagnosis": [("I20", "I21", "J10", "J11")[i] for i in codes],
            "procedure": [procedures[i] for i in words.integers(0, 5, ROWS)],
            "procedure_text": ["as written"] * ROWS,
            "town": [("A", "B", "C", "D", "E", "F")[min(i // 2, 5)] for i in codes],
            "remarks": [f"remark {i}" for i in range(ROWS)],
        }
    )


def panel(most: int) -> pl.DataFrame:
    """Return rows of people over years."""
    words = np.random.default_rng(5)
    rows = []
    for person in range(150):
        job = int(words.integers(0, 3))
        year = 2000 + int(words.integers(0, 6))
        sex = ("f", "m")[int(words.integers(0, 2))]
        for _ in range(int(words.integers(1, most + 1))):
            rows.append((person, year, sex, ("none", "part", "full")[job]))
            year = min(year + int(words.integers(1, 4)), 2019)
            job = int(words.integers(0, 3)) if words.random() < 0.3 else job
    return pl.DataFrame(rows, schema=["person", "year", "sex", "job"], orient="row")


def pair() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return households and their members."""
    words = np.random.default_rng(6)
    homes, members = [], []
    for home in range(200):
        size = int(words.integers(1, 4))
        homes.append((home, ("north", "south")[home % 2], min(3, size + home % 2)))
        members += [
            (home, ("head", "partner", "child")[i], ("f", "m")[int(words.integers(0, 2))])
            for i in range(size)
        ]
    return (
        pl.DataFrame(homes, schema=["household", "region", "rooms"], orient="row"),
        pl.DataFrame(members, schema=["household", "relation", "sex"], orient="row"),
    )


def write(name: str, schema: str, table: pl.DataFrame | None = None) -> tuple[str, str]:
    """Write a schema, and a table as CSV, into the inputs of a case; return their names."""
    codes, rows = f"in/{name}.toml", f"in/{name}.csv"
    Path(codes).write_text(schema)
    if table is not None:
        table.write_csv(rows)
    return codes, rows


def shown(name: str, frame: Any) -> None:
    """Write a frame of any kind as text: types of its columns, and rows."""
    import pyarrow as pa

    kind = type(frame).__module__.partition(".")[0]
    if kind == "pandas":
        head, body = repr(dict(frame.dtypes.astype(str))), frame.to_csv()
    elif isinstance(frame, pa.Table):
        head, body = frame.schema.to_string(show_schema_metadata=False), repr(frame.to_pylist())
    else:
        head, body = repr(dict(frame.schema)), frame.write_csv()
    Path(f"{name}.txt").write_text(f"{kind}\n{head}\n{body}\n")
