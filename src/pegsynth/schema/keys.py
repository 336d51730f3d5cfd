"""Every key of ``schema.toml``, declared once.

The parser knows no other keys; the reference (docs/schema.md), the JSON Schema for editors and
the messages about misplaced keys are made of these declarations.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pegsynth.schema.dialect import DECIMALS, ENCODINGS, SEPARATORS, THOUSANDS

Place = Literal[
    "file",
    "table",
    "panel",
    "tables",
    "features",
    "bins",
    "rules",
    "analyses",
    "tables_wanted",
]
Form = Literal[
    "flag",
    "whole",
    "number",
    "text",
    "texts",
    "values",
    "numbers",
    "table",
    "tables",
    "edges",
    "bins",
    "listed",
    "labels",
    "hierarchy",
    "bound",
    "gaps",
]

REFERENCE = "docs/schema.md"

PLACES: dict[Place, str] = {
    "file": "at the top of the file",
    "table": "under [table]",
    "panel": "under [panel]",
    "tables": "under [[tables]]",
    "features": "under [[features]]",
    "bins": "in bins = { .. } of a feature",
    "rules": "under [[rules]]",
    "analyses": "under [[analyses]]",
    "tables_wanted": "under [[tables_wanted]]",
}
FORMS: dict[Form, str] = {
    "flag": "true or false",
    "whole": "whole number",
    "number": "number",
    "text": "text",
    "texts": "list of texts",
    "values": "list of texts or numbers",
    "numbers": "list of numbers",
    "table": "table",
    "tables": "tables in double brackets",
    "edges": 'list of numbers or dates, "private", or a calendar step',
    "bins": "table, or a whole number with private edges",
    "listed": 'list of texts or numbers, the name of a file, or "private"',
    "labels": "table, or the name of a file",
    "hierarchy": "name of a file, `prefix:N`, or table",
    "bound": "number, or a date",
    "gaps": 'list of numbers, or "private"',
}


@dataclass(frozen=True)
class Key:
    """A key: where it stands, what it holds, what it means.

    Parameters
    ----------
    form
        What its value is.
    default
        What holds where it is left out, in words.
    example
        A line of TOML, or the value of one.
    meaning
        What it says.
    guarantee
        What it means for the guarantee.
    choices
        The texts that it may be; empty: any.
    """

    place: Place
    name: str
    form: Form
    default: str
    example: str
    meaning: str
    guarantee: str = "none"
    choices: tuple[str, ...] = ()


_PUBLIC = "declared public by `reviewed`"
_RECODED = "public, applied row by row: assumption `public-recodings` (R31)"

KEYS: tuple[Key, ...] = (
    Key("file", "format", "whole", "1", "1", "Version of the file's form."),
    Key(
        "file",
        "reviewed",
        "flag",
        "false",
        "true",
        "A person has checked that everything here is public knowledge.",
        "without it a guarantee is refused: assumption `reviewed-schema`",
    ),
    Key("file", "reviewed_by", "text", "nobody", '"A. Nowak"', "Who reviewed it."),
    Key("file", "reviewed_on", "text", "never", '"2026-03-01"', "The day of the review."),
    Key(
        "file",
        "table",
        "table",
        "a row is the unit",
        '{ unit = "person" }',
        "What is said of the whole table; written `[table]`.",
    ),
    Key(
        "file",
        "panel",
        "table",
        "rows stand alone",
        '{ unit = "patient", time = "admitted", most = 4 }',
        "How the rows of a unit belong together; written `[panel]` ([panels.md](panels.md)).",
        "all rows of a unit are protected together, at the price of one row (R24)",
    ),
    Key(
        "file",
        "tables",
        "tables",
        "one table",
        '[{ name = "households", key = "household", features = ["region"] }]',
        "Two tables: units such as households, and their rows such as members; written "
        "`[[tables]]` ([panels.md](panels.md#two-tables)).",
        "a unit with all its rows is protected, at the price of one row (R24)",
    ),
    Key(
        "file",
        "features",
        "tables",
        "",
        '[{ name = "sex", categories = ["f", "m"] }]',
        "One table for each column, in their order; written `[[features]]`.",
        "the order of features may settle heads: assumption `feature-order`",
    ),
    Key(
        "file",
        "rules",
        "tables",
        "no rules",
        '[{ forbid = { sex = ["m"], birth = ["yes"] } }]',
        "Combinations that cannot occur; written `[[rules]]`.",
        "assumption `public-rules`",
    ),
    Key(
        "file",
        "analyses",
        "tables",
        "none",
        '[{ formula = "charge ~ age + los", share = 0.05 }]',
        "Regressions that a release of `pegs-once` is to hold; written `[[analyses]]`.",
        "paid out of the budget: noisy sums (R26)",
    ),
    Key(
        "file",
        "tables_wanted",
        "tables",
        "none",
        '[{ features = ["ward", "chapter"], share = 0.05 }]',
        "Tables of counts that a release of `pegs-once` is to publish; written "
        "`[[tables_wanted]]`.",
        "paid out of the budget: noisy counts (R11)",
    ),
    Key(
        "table",
        "unit",
        "text",
        "a row is the unit",
        '"person"',
        "Column that names whom the guarantee protects; it is dropped.",
        "neighbours differ in all rows of one unit: assumption `unit-column`",
    ),
    Key(
        "table",
        "rows_per_unit",
        "whole",
        "1",
        "5",
        "The most rows of one unit that count; others are left out at random.",
        "the price grows with it; never the observed maximum",
    ),
    Key(
        "table",
        "separator",
        "text",
        "comma; tab in .tsv files",
        '";"',
        "What stands between the fields of a text file.",
        choices=(*SEPARATORS, "tab"),
    ),
    Key(
        "table",
        "decimal",
        "text",
        '"."',
        '","',
        "Decimal mark of numbers written as text.",
        choices=DECIMALS,
    ),
    Key(
        "table",
        "thousands",
        "text",
        "none",
        '"\u2019"',
        "Mark that may stand between groups of three digits.",
        choices=THOUSANDS,
    ),
    Key(
        "table",
        "encoding",
        "text",
        '"utf-8"',
        '"windows-1252"',
        "How the characters of a text file are written.",
        choices=tuple(ENCODINGS),
    ),
    Key(
        "panel",
        "unit",
        "text",
        "needed",
        '"patient"',
        "Column that names whom the guarantee protects; it is written with new numbers.",
        "neighbours differ in all rows of one unit: assumption `unit-column`",
    ),
    Key(
        "panel",
        "time",
        "text",
        "needed",
        '"admitted"',
        "Feature that the rows of a unit are in the order of: a date, a number, or ordinal.",
        "rows of a unit are ordered by its own values alone",
    ),
    Key(
        "panel",
        "most",
        "whole",
        "needed",
        "4",
        "The most rows of a unit that count; later ones are left out.",
        "assumption `panel`; never the observed maximum. The price does not grow with it",
    ),
    Key(
        "panel",
        "fixed",
        "texts",
        "none",
        '["sex", "birth_year"]',
        "Features that are the same in all rows of a unit. Where they are not, the first known one "
        "counts.",
        "assumption `panel`",
    ),
    Key(
        "panel",
        "gaps",
        "gaps",
        "as the edges of the time",
        "[0, 1, 7, 30, 365]",
        "Edges of the time from one row to the next, in units of the time.",
        f"{_PUBLIC}. Private ones are paid for",
    ),
    Key(
        "panel",
        "transitions",
        "text",
        "`pooled` above twelve rows, with `pegs-once`",
        '"pooled"',
        "How one row leads to the next: measured at every position by itself, or in one table for "
        "all positions ([panels.md](panels.md#many-rows)).",
        "folded, a unit costs what one row costs; pooled, `most - 1` rows in that table. Both are "
        "recorded and add up to the stated budget",
        ("pooled", "folded"),
    ),
    Key(
        "panel",
        "wide",
        "flag",
        "false",
        "true",
        "Whether the features are those of the folded table, as in model files.",
    ),
    Key(
        "panel",
        "tables",
        "texts",
        "one table",
        '["households", "persons"]',
        "The two tables that a folded one comes from, as in model files.",
    ),
    Key(
        "panel",
        "least",
        "whole",
        "1",
        "0",
        "The fewest rows of a unit of two tables, as in model files.",
    ),
    Key("tables", "name", "text", "needed", '"households"', "What the table is called in output."),
    Key(
        "tables",
        "key",
        "text",
        "needed",
        '"household"',
        "Column that both tables have: whose a row is. It is written with new numbers.",
        "neighbours differ in one unit of the first table with all its rows of the second",
    ),
    Key(
        "tables",
        "features",
        "texts",
        "first table: needed",
        '["region", "rooms"]',
        "Features of the first table; all others are those of the second.",
    ),
    Key(
        "tables",
        "order",
        "text",
        "second table: needed",
        '"age"',
        "Feature that the rows of a unit are in the order of.",
        "rows of a unit are ordered by its own values alone",
    ),
    Key(
        "tables",
        "most",
        "whole",
        "second table: needed",
        "8",
        "The most rows of a unit that count.",
        "assumption `panel`; never the observed maximum",
    ),
    Key(
        "tables",
        "least",
        "whole",
        "1",
        "0",
        "The fewest rows of a unit: 0 where it may have none.",
        "public",
    ),
    Key("features", "name", "text", "needed", '"age"', "Name of the column."),
    Key("features", "label", "text", "none", '"age in years"', "A line of description."),
    Key(
        "features",
        "kind",
        "text",
        '"nominal"',
        '"numeric"',
        "`nominal`: matched as text; `ordinal`: the same, in order; `numeric`: binned by `edges` "
        "or `bins`; `date`, `datetime`, `time` and `duration`: the same on a calendar "
        "([dates.md](dates.md)).",
        _PUBLIC,
        ("nominal", "ordinal", "numeric", "date", "time", "datetime", "duration"),
    ),
    Key(
        "features",
        "role",
        "text",
        '"other"',
        '"sensitive"',
        "`identifier` and `drop` columns are dropped; `quasi-identifier` and `sensitive` say what "
        "risks are measured.",
        "no value of a dropped column is kept",
        ("identifier", "quasi-identifier", "sensitive", "other", "drop"),
    ),
    Key(
        "features",
        "dtype",
        "text",
        "as the input",
        '"int64"',
        'Arrow type that the column is written in. Unless it is `"string"`, zeros at the end of a '
        "decimal do not count: 1.0 is the category `1`.",
    ),
    Key(
        "features",
        "categories",
        "listed",
        "none",
        '["f", "m"]',
        "The values that it may have, in order; or a CSV file beside the schema, whose first "
        "column lists them. `private`: a release finds the frequent ones of a nominal feature, and "
        'all others are "(other)" ([numbers.md](numbers.md#private-categories)).',
        f"{_PUBLIC}; a value that is not listed is refused, see `unknown`. Private ones are paid "
        "for, with a delta",
    ),
    Key(
        "features",
        "value_labels",
        "labels",
        "none",
        '{ 1 = "male", 2 = "female" }',
        "What codes mean, or a CSV file of codes and texts; written into .sav, .dta and .xlsx "
        "files.",
        "public, as categories are",
    ),
    Key(
        "features",
        "edges",
        "edges",
        "none",
        "[0, 18, 65, 110]",
        "Edges of the bins of a numeric feature; values beyond fall in the end bins. `private`: a "
        "release measures them ([numbers.md](numbers.md)).",
        f"{_PUBLIC}; round figures, not values of the data. Private ones are paid for",
    ),
    Key(
        "features",
        "bins",
        "bins",
        "none",
        "{ lowest = 0, highest = 100, count = 20 }",
        "Bins of equal width, instead of `edges`; with private edges, how many.",
        _PUBLIC,
    ),
    Key(
        "features",
        "lowest",
        "bound",
        "none",
        "0",
        "With private edges: values below count as this one, and none is written. With a calendar "
        "step: the first edge.",
        _PUBLIC,
    ),
    Key(
        "features",
        "highest",
        "bound",
        "none",
        "5000000",
        "With private edges: values above count as this one. With a calendar step: the last edge. "
        "With listed edges: where the last bin ends, if that is before the last edge. No value "
        "above is written.",
        _PUBLIC,
    ),
    Key(
        "features",
        "format",
        "text",
        "ISO 8601",
        '"%d.%m.%Y"',
        "How dates and times are written in columns of text: `%Y`, `%y`, `%m`, `%b`, `%d`, `%H`, "
        "`%M`, `%S`, `%z`. With `%z`, an offset from UTC, moments are counted; any other offset "
        "in a text is read past.",
        "public",
    ),
    Key(
        "features",
        "resolution",
        "text",
        "`day` for dates, else `second`",
        '"minute"',
        "The unit that dates and times are counted in; what is finer is cut off.",
        _PUBLIC,
        ("day", "hour", "minute", "second"),
    ),
    Key(
        "features",
        "weekday",
        "flag",
        "false",
        "true",
        "Whether the shares of weekdays are measured, and kept inside bins.",
        "paid for, as edges are",
    ),
    Key(
        "features",
        "after",
        "text",
        "none",
        '"admitted"',
        "Another date of the same row: the difference is modelled, so that no row has this date "
        "before it.",
        "a date before the other counts as the same: assumption `dates-in-order`",
    ),
    Key(
        "features",
        "inside",
        "text",
        '`"measured"` with private edges',
        '"uniform"',
        "How values lie inside their bin: by a measured shape, or uniformly.",
        "a measured shape is paid for",
        ("measured", "uniform"),
    ),
    Key(
        "features",
        "decimals",
        "whole",
        "as many as it takes",
        "2",
        "How many decimals its values have.",
        _PUBLIC,
    ),
    Key(
        "features",
        "missing",
        "values",
        "no missing category",
        '["", "-9"]',
        "Texts and codes that mean that the value is not known.",
        f"{_PUBLIC}; without it a missing value is refused",
    ),
    Key(
        "features",
        "keep_missing_codes",
        "flag",
        "`false`: one category, written as an empty cell",
        "true",
        "Whether every text of missing is a category of its own and comes back as it was.",
        _PUBLIC,
    ),
    Key(
        "features",
        "not_applicable",
        "values",
        "no such category",
        '["-8"]',
        "Texts and codes that mean that there can be no value.",
        _PUBLIC,
    ),
    Key(
        "features",
        "unknown",
        "text",
        '"error"',
        '"category"',
        'What an unlisted value is: `error` refuses the table, `category` is "(other)".',
        "`error` tells that such a value is there: assumption `unlisted-values`",
        ("error", "category"),
    ),
    Key(
        "features",
        "heads",
        "texts",
        "settled by `--order`",
        '["age", "sex"]',
        "Head features of this one, most important first.",
        "assumption `public-heads`",
    ),
    Key(
        "features",
        "l",
        "number",
        "none",
        "2.5",
        "Entropy l-diversity wanted of this feature.",
        "l-diversity, no differential privacy",
    ),
    Key(
        "features",
        "parent",
        "text",
        "none",
        '"chapter"',
        "Feature of which this one is a detail; `pegs-once` takes from `hierarchy` what belongs to "
        "what.",
        "public: assumption `public-parents`",
    ),
    Key(
        "features",
        "top",
        "number",
        "none",
        "90",
        "Numbers above count as this one.",
        _RECODED,
    ),
    Key(
        "features",
        "bottom",
        "number",
        "none",
        "0",
        "Numbers below count as this one.",
        _RECODED,
    ),
    Key(
        "features",
        "round",
        "number",
        "none",
        "5",
        "Numbers become the nearest multiple of this one.",
        _RECODED,
    ),
    Key(
        "features",
        "groups",
        "table",
        "none",
        '{ heart = ["I20", "I21"] }',
        "Categories by name, each with the values that become it; others stay as they are.",
        _RECODED,
    ),
    Key(
        "features",
        "hierarchy",
        "hierarchy",
        "none",
        '"prefix:3"',
        "What codes belong to: a CSV file beside the schema (code, parent, its parent ..), "
        "the first characters of a code, or a table of parents "
        "([recodings.md](recodings.md)).",
        _RECODED,
    ),
    Key(
        "features",
        "level",
        "whole",
        "1",
        "0",
        "How many steps of the hierarchy codes go up. At 0 they stay: the hierarchy says which are "
        "alike, and to which category of `parent` they belong.",
        _RECODED,
    ),
    Key(
        "features",
        "rare",
        "text",
        "none",
        '"paid"',
        'Categories with a small noisy count become one, "(rare)".',
        "the noisy counts are paid for; true counts are refused (R31)",
        ("paid",),
    ),
    Key(
        "features",
        "label_of",
        "text",
        "none",
        '"sex"',
        "The column describes the codes of this feature, by `value_labels` of either. It is "
        "neither read nor modelled, and written from the synthetic code.",
        "the texts are public",
    ),
    Key(
        "features",
        "shares",
        "numbers",
        "not known",
        "[0.5, 0.5]",
        "Public shares of its categories in the order of the codes, such as from a census.",
        "assumption `public-shares`",
    ),
    Key(
        "features",
        "drafted_from_data",
        "flag",
        "false",
        "true",
        "A program read the categories or edges off the table. Leave it as it is.",
        "listed in the ledger: a person declared them public afterwards",
    ),
    Key("bins", "lowest", "number", "needed", "0", "Lowest edge.", _PUBLIC),
    Key("bins", "highest", "number", "needed", "100", "Highest edge.", _PUBLIC),
    Key("bins", "count", "whole", "or `width`", "20", "How many bins.", _PUBLIC),
    Key("bins", "width", "number", "or `count`", "5", "Width of each bin.", _PUBLIC),
    Key("rules", "label", "text", "none", '"no births by men"', "What messages call the rule."),
    Key(
        "rules",
        "forbid",
        "table",
        "or `when`",
        '{ sex = ["m"], birth = ["yes"] }',
        "Categories that cannot occur together; a range is `{ at_least = 18, below = 65 }`.",
        "assumption `public-rules`",
    ),
    Key(
        "rules",
        "when",
        "table",
        "with `allow_only`",
        '{ ward = ["maternity"] }',
        "Where this holds ..",
        "assumption `public-rules`",
    ),
    Key(
        "rules",
        "allow_only",
        "table",
        "with `when`",
        '{ sex = ["f"] }',
        ".. no other category of these features can occur.",
        "assumption `public-rules`",
    ),
    Key(
        "rules",
        "order",
        "texts",
        "or `forbid`",
        '["admitted", "discharged"]',
        "None of these features is above the next; where bins overlap use `after`.",
        "assumption `public-rules`",
    ),
    Key(
        "rules",
        "drafted_from_data",
        "flag",
        "false",
        "true",
        "A program found that the combination never occurs. Leave it as it is.",
        "listed in the ledger: a person declared the rule public afterwards",
    ),
    Key(
        "analyses",
        "formula",
        "text",
        "needed",
        '"I(charge > 25000) ~ age + C(sev) + los"',
        "Response and terms: a feature, `C(feature)` by its categories, a comparison `I(..)`, "
        "`log(..)`, `I(x^2)`, `rcs(x, 1, 2, 3)` or a product `a*b`.",
        "settled before data is read",
    ),
    Key(
        "analyses",
        "family",
        "text",
        '"gaussian"',
        '"binomial"',
        "Distribution of the response.",
        "settled before data is read",
        choices=("gaussian", "binomial", "poisson", "multinomial"),
    ),
    Key(
        "analyses",
        "share",
        "number",
        "0.05",
        "0.1",
        "Part of the whole budget that the analysis gets.",
        "settled before data is read",
    ),
    Key(
        "tables_wanted",
        "features",
        "texts",
        "needed",
        '["ward", "chapter"]',
        "Features of the table. A survival table has time, event and group; standardised rates "
        "area, age and event.",
        "settled before data is read",
    ),
    Key(
        "tables_wanted",
        "share",
        "number",
        "0.05",
        "0.1",
        "Part of the whole budget that the table gets.",
        "settled before data is read",
    ),
)


def names(place: Place) -> tuple[str, ...]:
    """Return the keys of a place, in their order."""
    return tuple(key.name for key in KEYS if key.place == place)


def keys_of(place: Place) -> Iterator[Key]:
    """Yield the declarations of a place."""
    return (key for key in KEYS if key.place == place)


def misplaced(name: str, place: Place) -> str:
    """Say where a key that is not known here belongs, or which key was probably meant."""
    elsewhere = [key for key in KEYS if key.name == name and key.place != place]
    if elsewhere:
        places = " or ".join(PLACES[key.place] for key in elsewhere)
        return f"it belongs {places}, as {name} = {elsewhere[0].example}"
    close = difflib.get_close_matches(name[:60], [key.name for key in KEYS], n=1, cutoff=0.75)
    here = difflib.get_close_matches(name[:60], names(place), n=1, cutoff=0.0)
    if (
        close
        and close[0] not in names(place)
        and not difflib.get_close_matches(name[:60], names(place), n=1, cutoff=0.75)
    ):
        found = next(key for key in KEYS if key.name == close[0])
        return f"did you mean {found.name!r}? It belongs {PLACES[found.place]}"
    return f"did you mean {here[0]!r}?"
