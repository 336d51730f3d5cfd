"""Whether a query selects rows one by one.

A guarantee about rows of a database carries over to the rows of a query only if every
row that the query gives stems from one row of one table, whatever the others are. This
module recognises the plain shape ``SELECT expressions FROM table [WHERE condition]`` whose
expressions call nothing but functions known to look at their arguments alone. Everything
else (joins, subqueries, grouping, DISTINCT, LIMIT, ORDER BY, windows, set operations,
unknown functions, anything that is not understood) counts as not row by row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t\n\r\f\v]+|--[^\n\r]*|/\*(?:(?!/\*).)*?\*/)
    |(?P<text>[eE]?'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<mark>[(),.;*])
    |(?P<operator>(?!/\*)[-+/<>=~!@\#%^&|?:\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
# Systems disagree on whether a lone carriage return ends a comment.
_LONE_RETURN = re.compile(r"\r(?!\n)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FORBIDDEN = _words(
    "cross except fetch filter for group having intersect into join lateral limit minus natural "
    "offset order over returning select subplan table tablesample union values window with "
    "within"
)
# Where a row happens to lie: a condition on it selects the first so many rows.
_PHYSICAL = _words("_rowid_ cmax cmin ctid oid rowid tableoid xmax xmin")
_BEFORE_BRACKETS = _words(
    "all and any as between by case collate else from ilike in is isnull like not notnull null on "
    "or similar some then to when where"
)
# Types with a size: CAST(x AS numeric(10, 2)).
_SIZED_TYPES = _words(
    "bit char character decimal float interval numeric time timestamp varchar varying"
)
_FUNCTIONS = _words(
    "abs age ascii btrim cast cbrt ceil ceiling char_length character_length chr coalesce concat "
    "concat_ws cos date date_part date_trunc datetime degrees div exp extract floor glob greatest "
    "hex ifnull iif initcap instr isfinite julianday least left length ln log log10 lower lpad "
    "ltrim make_date md5 mod nullif octet_length overlay position pow power printf radians "
    "regexp_replace replace reverse right round rpad rtrim sign sin split_part sqrt starts_with "
    "strftime strpos substr substring tan to_char to_date to_number to_timestamp translate trim "
    "trunc typeof unicode unistr upper width_bucket"
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The word in small letters; empty for anything else."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """The word, or what stands between quotes, in small letters."""
        return self.text.strip('"').lower() if self.kind in ("word", "quoted") else ""


def rowwise_table(query: str, *, brackets: bool) -> str | None:
    """Return the table that a query selects from row by row, as the query writes it.

    None means that the query is of another shape, or is not understood.

    Parameters
    ----------
    brackets
        Whether square brackets are subscripts, as in PostgreSQL. Elsewhere they quote
        names and are not understood.
    """
    tokens = _tokens(query, brackets=brackets)
    if tokens is None or not tokens or tokens[0].word != "select":
        return None
    start = _clause(tokens, 1, "from")
    if start is None or start == 1 or not _plain(tokens[1:start]):
        return None
    table, rest = _name(tokens, start + 1)
    rest = _alias(tokens, rest)
    if table is None or (rest < len(tokens) and tokens[rest].word != "where"):
        return None
    condition = tokens[rest + 1 :]
    if rest < len(tokens) and not (condition and _plain(condition)):
        return None
    return table


def rowwise_expression(text: str) -> bool:
    """Say whether an expression that PostgreSQL printed looks at one row alone."""
    tokens = _tokens(text, brackets=True)
    return tokens is not None and _plain(tokens)


def without_end(query: str) -> str:
    """Return a query without the semicolon that ends it."""
    return re.sub(r"[\s;]+\Z", "", query)


def _tokens(query: str, *, brackets: bool) -> list[_Token] | None:
    """Cut a query into tokens; None if it has anything unknown in it."""
    tokens = []
    position = 0
    text = without_end(query)
    if _LONE_RETURN.search(text):
        return None
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            return None
        position = found.end()
        kind, piece = str(found.lastgroup), found[0]
        # Backslashes in strings marked with E may hide where the string ends.
        escaped = kind == "text" and piece[0] in "eE" and "\\" in piece
        if escaped or (piece in "[]" and not brackets):
            return None
        if kind != "blank":
            tokens.append(_Token(kind, piece))
    return tokens


def _clause(tokens: Sequence[_Token], start: int, word: str) -> int | None:
    """Return where a clause starts outside of all parentheses."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        # Not that of IS DISTINCT FROM.
        distinct = index > 0 and tokens[index - 1].word == "distinct"
        if depth == 0 and tokens[index].word == word and not distinct:
            return index
    return None


def _name(tokens: Sequence[_Token], start: int) -> tuple[str | None, int]:
    """Read a table's name, with or without its schema."""
    pieces: list[str] = []
    index = start
    while index < len(tokens) and _is_name(tokens[index]):
        pieces.append(tokens[index].text)
        index += 1
        if index >= len(tokens) or tokens[index].text != ".":
            return ".".join(pieces), index
        index += 1
    return None, index


def _is_name(token: _Token) -> bool:
    reserved = _FORBIDDEN | _BEFORE_BRACKETS
    return token.kind == "quoted" or (token.kind == "word" and token.word not in reserved)


def _alias(tokens: Sequence[_Token], start: int) -> int:
    """Pass over the name that a query gives its table."""
    if start < len(tokens) and tokens[start].word == "as":
        start += 1
    if start < len(tokens) and _is_name(tokens[start]):
        start += 1
    return start


def _plain(tokens: Sequence[_Token]) -> bool:
    """Say whether expressions hold no clause, and call nothing that looks beyond its row."""
    depth = 0
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else _Token("", "")
        after = tokens[index + 1].text.lower() if index + 1 < len(tokens) else ""
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        # SUBSTRING(x FROM 2 FOR 3) has these words inside of its parentheses.
        forbidden = token.word in _FORBIDDEN and not (depth and token.word == "for")
        if depth < 0 or token.text == ";" or forbidden or token.name in _PHYSICAL:
            return False
        if token.word == "from" and not (depth or before.word == "distinct"):
            return False
        if token.word == "distinct" and (before.word not in ("is", "not") or after != "from"):
            return False
        if token.word == "in" and after != "(" and not _of_position(tokens, index):
            # SQLite's `x IN name` reads the whole of another table.
            return False
        if after == "(" and token.name and not _known_before(token, before):
            return False
    return depth == 0


def _of_position(tokens: Sequence[_Token], index: int) -> bool:
    """Say whether IN stands in ``POSITION('a' IN b)``, which looks for one text in another."""
    depth = 0
    for place in range(index - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(tokens[place].text, 0)
        if depth < 0:
            return place > 0 and tokens[place - 1].word == "position"
    return False


def _known_before(token: _Token, before: _Token) -> bool:
    """Say whether a word or a quoted name may stand before an opening parenthesis."""
    if before.text == ".":
        return False
    if token.kind == "quoted":
        return token.text.strip('"') in _FUNCTIONS
    return token.word in _FUNCTIONS | _BEFORE_BRACKETS | _SIZED_TYPES
