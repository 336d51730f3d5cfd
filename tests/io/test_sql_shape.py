"""Which queries select rows one by one; everything that is not understood does not."""

import pytest

from pegsynth.tables.sql_shape import rowwise_expression, rowwise_table, without_end

PLAIN = {
    "SELECT * FROM t": "t",
    "select a, b from t;": "t",
    " SELECT a -- a comment\n FROM t /* another */ ;\n": "t",
    'SELECT "a b", "select" FROM "my schema"."odd ""name"""': '"my schema"."odd ""name"""',
    "SELECT t.a AS x, t.* FROM s.t AS t WHERE t.a > 5": "s.t",
    "SELECT a FROM t x WHERE a IN (1, 2) AND (b IS NOT NULL OR c LIKE 'x%')": "t",
    "SELECT lower(a), coalesce(b, 'LIMIT 5'), CAST(c AS numeric(10, 2)) FROM t": "t",
    "SELECT extract(year FROM d), substring(a FROM 1 FOR 3) FROM t WHERE d >= date '2020-01-01'": (
        "t"
    ),
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END FROM t WHERE NOT (a = 1)": "t",
    "SELECT a FROM t WHERE a IS DISTINCT FROM b": "t",
    "SELECT position('x' IN a) FROM t WHERE position(lower(b) IN a) > 0": "t",
    "SELECT a FROM t WHERE a IS NOT DISTINCT FROM 'it''s; LIMIT 3'": "t",
    "SELECT a::text, -b + 1.5e3, 'größe' FROM äpfel": "äpfel",
    "SELECT 'SELECT count(*) FROM x -- ' FROM t": "t",
    "SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND c ~ '^x' AND d ->> 'k' = 'v'": "t",
}
OTHER = [
    *("", ";", "SELECT", "SELECT FROM t", "SELECT a", "SELECT a FROM", "TABLE t", "VALUES (1)"),
    "SELECT a FROM t LIMIT 5",
    "SELECT a FROM t WHERE a > 1 LIMIT 5",
    "SELECT a FROM t WHERE a > 1LIMIT 5",
    "SELECT a FROM t OFFSET 5",
    "SELECT a FROM t FETCH FIRST 5 ROWS ONLY",
    "SELECT a FROM t ORDER BY a",
    "SELECT a FROM t WHERE true ORDER BY a",
    "SELECT a FROM t JOIN u ON t.a = u.a",
    "SELECT a FROM t LEFT JOIN u USING (a)",
    "SELECT a FROM t NATURAL JOIN u",
    "SELECT a FROM t CROSS JOIN u",
    "SELECT a FROM t, u",
    "SELECT a FROM t x, u y WHERE x.a = y.a",
    "SELECT a FROM (SELECT a FROM t) AS u",
    "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT a FROM t WHERE a IN u",
    "SELECT a FROM t WHERE a NOT IN u",
    'SELECT a FROM t WHERE a IN "u"',
    "SELECT a FROM t WHERE a IN main.u",
    "SELECT a FROM t WHERE a IN /* ( */ u",
    "SELECT (a IN u) FROM t",
    "SELECT a FROM t WHERE a IN generate_series(1, 5)",
    "SELECT a FROM t WHERE a IN",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u)",
    "SELECT a FROM t WHERE a = ANY (TABLE u)",
    "SELECT (SELECT max(a) FROM t) FROM t",
    "SELECT a FROM t UNION SELECT a FROM u",
    "SELECT a FROM t UNION ALL SELECT a FROM u",
    "SELECT a FROM t EXCEPT SELECT a FROM u",
    "SELECT a FROM t INTERSECT SELECT a FROM u",
    "SELECT a FROM t TABLESAMPLE system (5)",
    "SELECT DISTINCT a FROM t",
    "SELECT distinct on (a) a, b FROM t",
    "SELECT a, count(*) FROM t GROUP BY a",
    "SELECT count(*) FROM t",
    "SELECT COUNT (*) FROM t",
    "SELECT max(a) FROM t",
    'SELECT "max"(a) FROM t',
    "SELECT pg_catalog.max(a) FROM t",
    "SELECT pg_catalog.lower(a) FROM t",
    "SELECT a FROM t GROUP BY a",
    "SELECT a FROM t WHERE true GROUP BY a HAVING count(*) > 1",
    "SELECT row_number() OVER (ORDER BY a) FROM t",
    "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b)",
    "SELECT lower(a) FILTER (WHERE true) FROM t",
    "SELECT a FROM t WHERE my_function(a)",
    "SELECT a FROM t WHERE random() < 0.1",
    "SELECT unnest(a) FROM t",
    "SELECT generate_series(1, 3) FROM t",
    "SELECT a FROM generate_series(1, 3)",
    "SELECT a FROM ONLY (t)",
    "SELECT a FROM LATERAL f(1)",
    "WITH u AS (SELECT a FROM t) SELECT a FROM u",
    "SELECT a INTO u FROM t",
    "SELECT a FROM t FOR UPDATE",
    "DELETE FROM t RETURNING a",
    "SELECT a FROM t WHERE ctid < '(10,0)'",
    "SELECT a FROM t WHERE rowid <= 100",
    "SELECT a FROM t WHERE \"ctid\" < '(10,0)'",
    "SELECT a FROM t; SELECT a FROM t",
    "SELECT a FROM t) AS x, (SELECT a FROM t",
    "SELECT a FROM t WHERE (a > 1",
    "SELECT a FROM t WHERE",
    "EXPLAIN SELECT a FROM t",
    # What hides a clause from one reader and shows it to another.
    "SELECT a FROM t WHERE a > 0 /* it's /* x */ LIMIT 5 -- '",
    "SELECT a FROM t WHERE a > 0 +-- it's\n LIMIT 5 -- '",
    "SELECT a FROM t WHERE b = E'\\' LIMIT 5 -- '",
    "SELECT a FROM t WHERE b = e'x\\'y' AND c = 'z'",
    "SELECT a FROM t -- \r LIMIT 5",
    "SELECT a FROM t WHERE b = $$x$$",
    "SELECT a FROM t WHERE b = $1",
    "SELECT [a'b] FROM t WHERE c < 5 LIMIT 3 --'",
    "SELECT `a` FROM t",
    "SELECT a FROM t WHERE b = 'open",
    'SELECT "open FROM t',
    "SELECT a FROM t /* open",
    "SELECT\xa0a FROM t",
    "SELECT a FROM t\0",
]


@pytest.mark.parametrize("query", PLAIN)
@pytest.mark.parametrize("brackets", [True, False])
def test_the_plain_shape(query, brackets):
    assert rowwise_table(query, brackets=brackets) == PLAIN[query]


@pytest.mark.parametrize("query", OTHER)
@pytest.mark.parametrize("brackets", [True, False])
def test_every_other_shape(query, brackets):
    assert rowwise_table(query, brackets=brackets) is None


def test_brackets_quote_names_or_are_subscripts():
    assert rowwise_table("SELECT a[1] FROM t", brackets=True) == "t"
    assert rowwise_table("SELECT a[1] FROM t", brackets=False) is None


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "t.a",
        "(num)::double precision",
        '"substring"(b, 1, 2)',
        "EXTRACT(year FROM d)",
        "(sev = ANY ('{1,2}'::integer[]))",
        "((sex)::text ~~ 'f%'::text)",
        "CASE WHEN (a > 1) THEN 'x'::text ELSE NULL::text END",
    ],
)
def test_expressions_that_a_plan_prints(text):
    assert rowwise_expression(text)


@pytest.mark.parametrize("text", ["count(t.*)", "f(t.*)", "s.lower(a)", "(SubPlan 1)", "$0"])
def test_expressions_that_look_further(text):
    assert not rowwise_expression(text)


def test_the_end_of_a_query():
    assert without_end(" SELECT 1 ; \n; ") == " SELECT 1"
