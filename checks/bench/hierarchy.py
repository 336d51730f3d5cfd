"""Codes under chapters: what `parent` and a public hierarchy do to the error of `pegs-once`.

``python -m checks.bench.hierarchy [--rows N] [--codes C] [--runs K] [--epsilon E ..]`` releases an
invented table of codes, their chapters and five features that depend on both, once with the
hierarchy and once without, and prints mean total variation distances over unseeded runs. Few codes
are frequent and most are rare, as in registers of diagnoses.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations

import numpy as np
import polars as pl

from pegsynth import Feature, Schema, synthesize
from pegsynth.codec.codec import encode
from pegsynth.kernels.arrays import Codes
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import Recoding

DELTA = 1e-9
CHAPTERS = 20
SEED = 1
CHAPTER, CODE = 0, 1
OTHERS = {"sex": 2, "age": 10, "procedure": 5, "days": 12, "ward": 6}
ORDERED = ("age", "days")


def invented(rows: int, codes: int) -> tuple[pl.DataFrame, Schema]:
    """Return a table, and its schema without a hierarchy."""
    words = np.random.default_rng(SEED)
    sizes = words.dirichlet(np.full(CHAPTERS, 2.0))
    owner = np.sort(
        np.concatenate([np.arange(CHAPTERS), words.choice(CHAPTERS, codes - CHAPTERS, p=sizes)])
    )
    rank = np.concatenate([np.arange(1, np.sum(owner == c) + 1) for c in range(CHAPTERS)])
    shares = rank**-1.1 * words.dirichlet(np.full(CHAPTERS, 1.5))[owner]
    code = words.choice(codes, rows, p=shares / shares.sum())
    chapter = owner[code]
    by_chapter, by_code = words.dirichlet(np.ones(5), CHAPTERS), words.dirichlet(np.ones(5), codes)
    odds = 0.6 * by_chapter[chapter] + 0.4 * by_code[code]
    age = np.clip(words.normal(30 + 2.5 * chapter + 6 * (code % 3), 15) // 10, 0, 9).astype(int)
    columns = {
        "chapter": _names("C", chapter),
        "code": [f"{c}.{n}" for c, n in zip(_names("C", chapter), code, strict=True)],
        "sex": (words.random(rows) < 0.35 + 0.06 * (chapter % 5)).astype(int),
        "age": age,
        "procedure": (odds.cumsum(axis=1) < words.random(rows)[:, None]).sum(axis=1),
        "days": np.minimum(words.poisson(1 + age / 3 + chapter % 4), 11),
        "ward": (chapter // 4 + words.integers(0, 2, rows)) % 6,
    }
    features = (
        Feature("chapter", categories=tuple(_names("C", np.arange(CHAPTERS)))),
        Feature("code", categories=tuple(f"C{c:02}.{n}" for n, c in enumerate(owner.tolist()))),
        *(
            Feature(
                name, "ordinal" if name in ORDERED else "nominal", tuple(map(str, range(count)))
            )
            for name, count in OTHERS.items()
        ),
    )
    return pl.DataFrame(columns), Schema(features, reviewed=True)


def _names(letter: str, numbers: np.ndarray) -> list[str]:
    return [f"{letter}{number:02}" for number in numbers.tolist()]


def nested(schema: Schema) -> Schema:
    """Return the schema with a hierarchy that leads codes to their chapters."""
    tree = Hierarchy.of({code: code.partition(".")[0] for code in schema["code"].categories})
    told = schema.with_feature("code", parent="chapter", recoding=Recoding(hierarchy=tree, level=0))
    return replace(told, reviewed=True)


@dataclass(frozen=True)
class Errors:
    """Total variation distances of one release.

    Parameters
    ----------
    chapters, codes
        Of one-way tables.
    pairs, others, of_codes
        Mean of all pairs, of those without the code, and of those of the code and another
        feature but the chapter.
    strays
        Part of the rows whose code is of another chapter.
    """

    chapters: float
    codes: float
    pairs: float
    others: float
    of_codes: float
    strays: float

    @classmethod
    def of(cls, original: Codes, released: Codes, schema: Schema, strays: float) -> Errors:
        """Compare two tables of codes."""
        counts = schema.category_counts

        def distance(*features: int) -> float:
            sizes = [counts[feature] for feature in features]
            cells = [
                np.bincount(
                    np.ravel_multi_index([t[:, f].astype(np.int64) for f in features], sizes),
                    minlength=int(np.prod(sizes)),
                )
                / len(t)
                for t in (original, released)
            ]
            return float(np.abs(cells[0] - cells[1]).sum() / 2)

        pairs = {pair: distance(*pair) for pair in combinations(range(len(counts)), 2)}
        return cls(
            distance(CHAPTER),
            distance(CODE),
            float(np.mean([*pairs.values()])),
            float(np.mean([d for pair, d in pairs.items() if CODE not in pair])),
            float(
                np.mean([d for pair, d in pairs.items() if CODE in pair and CHAPTER not in pair])
            ),
            strays,
        )


def runs(
    table: pl.DataFrame, schema: Schema, plain: Schema, *, epsilon: float, count: int
) -> Iterator[Errors]:
    """Yield the errors of some releases, judged without the hierarchy."""
    original = encode(table, plain)
    for _ in range(count):
        (frame,) = synthesize(
            table, schema, method="pegs-once", epsilon=epsilon, delta=DELTA, rows=table.height
        ).frames
        owner = frame["code"].cast(pl.String).str.split(".").list.first()
        strays = float((owner != frame["chapter"].cast(pl.String)).mean() or 0.0)
        yield Errors.of(original, encode(frame, plain), plain, strays)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each budget and schema."""
    parser = argparse.ArgumentParser(prog="checks.bench.hierarchy", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--codes", type=int, default=1_300)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    options = parser.parse_args(arguments)
    table, plain = invented(options.rows, options.codes)
    names = [each.name for each in fields(Errors)]
    print(f"| total eps | schema | {' | '.join(names)} |\n|{'---|' * (len(names) + 2)}")
    for epsilon in options.epsilon:
        for name, schema in (("without parent", plain), ("parent and hierarchy", nested(plain))):
            found = [*runs(table, schema, plain, epsilon=epsilon, count=options.runs)]
            means = (np.mean([getattr(each, key) for each in found]) for key in names)
            figures = " | ".join(f"{mean:.4f}" for mean in means)
            print(f"| {epsilon:g} | {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
