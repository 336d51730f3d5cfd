"""Every sentence that documents of a release hold, and when it is true of a run.

`STATEMENTS` is a table: documents, a sentence, and a predicate over the facts of `told_run`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from told_run import Told

from pegsynth.schema import Feature

Holds = Callable[[Told], bool | int]

HOW, README, PRIVACY = "HOW-TO-ANALYSE.md", "README.md", "PRIVACY.md"
QUALITY, REGISTRY, SIGNED = "QUALITY.md", "dp-registry.yaml", "sign-off.html"
CROISSANT, DCAT, REPORT = "croissant.json", "dcat.jsonld", "report.html"


@dataclass(frozen=True)
class Statement:
    """A sentence and when it holds.

    Parameters
    ----------
    documents
        Where it may stand.
    words
        The sentence; ``{}`` stands for words of one sentence, ``{#}`` for a number, ``{*}`` for
        anything.
    holds
        Whether it is true of a run, or how many times it is.
    """

    documents: tuple[str, ...]
    words: str
    holds: Holds

    @property
    def pattern(self) -> re.Pattern[str]:
        places = {r"\{\}": r"[^.~]*?", r"\{\#\}": r"[-\d.,:e]*\d", r"\{\*\}": ".*?"}
        pattern = re.escape(" ".join(self.words.split())).replace(r"\ ", " ")
        for place, words in places.items():
            pattern = pattern.replace(place, words)
        return re.compile(pattern)


def say(documents: str | tuple[str, ...], words: str, holds: Holds) -> Statement:
    return Statement((documents,) if isinstance(documents, str) else documents, words, holds)


def always(_: Told) -> bool:
    return True


def more_than_ten(t: Told) -> bool:
    q = t.quality
    shown = [q["published_tables"], q["triples_held"], (q.get("bought") or {}).get("distances", ())]
    shown += [q["pairs_held"] + q["pairs_not_held"]] * bool(q["published_tables"])
    return max(map(len, shown)) > 10


def declared_code(t: Told) -> bool:
    code = t.replicates > 0 and not t.two_tables and t.flag("--decode") != "labels"
    return bool(t.analyses and code)


def numbers_written(t: Told) -> bool:
    return any(f.binned for f in t.schema.features) and t.flag("--decode") != "labels"


def small_cells(t: Told) -> bool:
    """Whether one person more or less leaves a guess at 95 % (R35), by its closed forms."""
    most = math.log(19)
    by_rho = t.guarantee["rho"] is not None and t.guarantee["rho"] <= 0.9 * most
    return t.private and (by_rho or t.guarantee["epsilon"] <= most)


def stated(key: str) -> Holds:
    return lambda t: key in t.about


def bounded(t: Told) -> list[Feature]:
    """Features whose numbers were bounded by stated edges."""
    return [f for f in t.binned if not f.private_edges]


def positions(t: Told) -> int:
    wide = t.flag("--wide") and t.schema.panel is not None
    return len(t.schema.panel.positions) if wide else 1


def first_positions(t: Told) -> list[Feature]:
    """Features with stated edges, each once: from the second row on a time is a gap."""
    return [f for f in t.schema.features if f in bounded(t)]


def listed_edges(t: Told) -> bool:
    """Whether the schema lists edges of a feature, or of the time between rows."""
    gaps = t.schema.panel is not None and isinstance(t.schema.panel.gaps, tuple)
    listed = any(f.binned and not f.private_edges for f in t.schema.features)
    return listed or bool(gaps and t.schema.panel.gaps)


def counted_after(t: Told) -> int:
    gaps = 0
    if t.flag("--wide") and t.schema.panel is not None:
        gaps = sum(f.name == t.schema.panel.time for f in first_positions(t)) * (positions(t) - 1)
    return sum(f.after is not None for f in bounded(t)) + gaps


def counted_from(t: Told) -> int:
    return sum(f.after is None for f in first_positions(t))


def unlisted(t: Told) -> bool:
    return any(f.unknown == "category" and f.name not in t.kept for f in t.schema.features)


def recoded(t: Told, key: str) -> int:
    return sum(bool(f.recoding and getattr(f.recoding, key)) for f in t.schema.features)


def preprocessed(t: Told) -> bool:
    return bool(t.binned or unlisted(t) or t.unit or recoded(t, "groups") or rare(t))


def rare(t: Told) -> int:
    """Features with a group that nobody stated."""
    merged = [f for f in t.schema.features if f.recoding and f.recoding.rare]
    return sum(bool(t.published[f.name].recoding.groups) for f in merged)


def folded(t: Told) -> bool:
    return t.schema.panel is not None


def sums(t: Told) -> bool:
    return any(e["kind"] == "noisy-sums" and e["purpose"] == "analysis" for e in t.events)


def summed(t: Told) -> set[str]:
    return {
        n
        for e in t.events
        if e["kind"] == "noisy-sums" and e["purpose"] == "analysis"
        for n in e["features"]
    }


def written(t: Told) -> list[Feature]:
    """Features of numbers and dates that are written as values."""
    return [] if t.flag("--decode") == "labels" else t.binned


def shaped(t: Told) -> bool:
    return any(
        (f.private_edges and f.inside != "uniform") or f.inside == "measured" for f in written(t)
    )


def plain(t: Told) -> list[Feature]:
    return [f for f in written(t) if not f.private_edges and f.inside != "measured"]


def one_table(t: Told) -> bool:
    return t.tables == 1 and not t.replicates


def missing_codes(t: Told, *, kept: bool) -> int:
    return sum(
        any(text.strip() for text in f.missing) and f.keep_missing_codes == kept
        for f in t.published.features
    )


def plug_in(t: Told) -> bool:
    """Several tables that are combined with their variances."""
    return t.tables > 1 and not t.own_noise and not t.no_intervals


def combined(t: Told) -> bool:
    return t.tables > 1 and not t.no_intervals and not t.versions


def needs_rows_in(t: Told) -> bool:
    return plug_in(t) and not t.kept


def can_combine(t: Told) -> bool:
    """Whether the release says all that its rule needs."""
    return not needs_rows_in(t) or bool(t.flag("--rows-in"))


def r_code(t: Told) -> bool:
    listed = not t.two_tables and not t.versions and t.flag("--format") != "parquet"
    return bool(listed and not t.replicates)


def sas_code(t: Told) -> bool:
    return bool(t.replicates and t.flag("--format") != "parquet")


_BOUNDS = (
    "Values of {} below {*} or above {*}, if there were any, were counted as these bounds: means "
    "and spreads are pulled towards the middle."
)
# fmt: off
PREPROCESSING = (
    ("Of the rows of one {} the first {#} count, in their order; later ones were left out. So "
     "whoever has more than {#} rows has fewer here.", folded),
    ("At most {#} rows of one {} were counted, drawn at random; a {} with more counts for less "
     "than its rows. So whatever comes with having many rows comes out too rare: proportions are "
     "pulled towards those of units with few rows, and totals are too small. Proportions among "
     "units with few rows are not touched.",
     lambda t: t.unit and not folded(t) and (t.schema.rows_per_unit > 1)),
    ("At most one row of one {} was counted, drawn at random; a {} with more counts for less "
     "than its rows. So whatever comes with having many rows comes out too rare: proportions are "
     "pulled towards those of units with few rows, and totals are too small. Proportions among "
     "units with few rows are not touched.",
     lambda t: t.unit and not folded(t) and (t.schema.rows_per_unit == 1)),
    ("Values of {} that `schema.toml` does not list were counted together, as one category: rare "
     "values cannot be told apart, and have not vanished.", unlisted),
    (_BOUNDS, counted_from),
    ("Times from {} to {} above {#} {}, if there were any, were counted as that: means and "
     "spreads are too small.", counted_after),
    ("The ends of {}, {*} and {*}, were measured with noise: values beyond, if there were any, "
     "were counted in the first and the last bin.", lambda t: len(t.private_edges)),
    ("Numbers of {} were rounded to multiples of {#}.", lambda t: recoded(t, "round")),
    ("Values of {} were recoded into the categories of `schema.toml` by public rules; what a "
     "category holds together cannot be told apart.", lambda t: recoded(t, "groups")),
    ("Categories of {} with a small noisy count were merged: `schema.toml` says which.", rare),
)

MARKS = (
    ("Synthetic data: every row was drawn from a model, and none is that of a person.",
     lambda t: not t.kept and not t.resampled),
    ("Partly synthetic data: some columns hold values of the original rows.",
     lambda t: bool(t.kept)),
    ("Resampled data, not synthetic: every row has the categories of a row of the original table.",
     lambda t: t.resampled),
)

STATEMENTS = (
    # HOW-TO-ANALYSE.md: what the tables are
    say(HOW, "# How to analyse this table", lambda t: t.tables == 1),
    say(HOW, "# How to analyse these tables", lambda t: t.tables > 1),
    say(HOW, "The folder holds {#} synthetic table{*}.",
        lambda t: not t.resampled and not t.kept and not (t.two_tables and t.tables > 1)),
    say(HOW, "The folder holds {#} pairs of synthetic tables, {} and {}, of {#} units ({}) each, "
        "with their rows.", lambda t: t.two_tables and t.tables > 1),
    say(HOW, "The folder holds {#} resampled table{*}.", lambda t: t.resampled),
    say(HOW, "The folder holds {#} partly synthetic table{*}.", lambda t: bool(t.kept)),
    say(HOW, "Every row was drawn from what the method keeps of the original table.",
        lambda t: not t.kept and not t.resampled),
    say(HOW, "Every row has the categories of an original row, drawn with replacement.",
        lambda t: t.resampled),
    say(HOW, "Columns with original values: {}. Drawn from a model: {}.", lambda t: bool(t.kept)),
    say(HOW, "{} has the value that was requested in every row: estimates are about such rows "
        "alone.", lambda t: bool(t.flag("--where"))),
    say(HOW, "`schema.toml` lists every feature with its categories or bins.", always),
    say(HOW, "{}: the bin is written, and no value in it.",
        lambda t: t.flag("--decode") == "labels" and bool(t.binned)),
    say(HOW, "{}: values inside bins have a shape that was measured with noise (purpose `edges` "
        "in `privacy.json`).", shaped),
    say(HOW, "{}: values are drawn uniformly inside bins that were measured with noise, so "
        "nothing finer than a bin is information.",
        lambda t: any(f.private_edges and f.inside == "uniform" for f in written(t))),
    say(HOW, "{}: values are drawn uniformly inside stated bins, so nothing finer than a bin is "
        "information.", lambda t: any(f.name not in summed(t) for f in plain(t))),
    say(HOW, "{}: values are drawn inside stated bins so that they agree with the sums of "
        "declared analyses; nothing else that is finer than a bin is information.",
        lambda t: any(f.name in summed(t) for f in plain(t))),
    # Completed tables
    say(HOW, "## Completed tables In the files `synthetic-*` values are missing as in the "
        "original: \"missing\" was synthesized like a category. Beside them {} completed {} of "
        "{}, `completed-1-{#}.csv` being the {} of table 1. Every missing value in them was "
        "imputed from the synthetic rows of that table alone, by trees grown with redrawn "
        "weights; all other values are the same. So the completed tables reveal nothing more, "
        "and `privacy.json` holds for all files together. Use the completed tables for analyses "
        "that should not lose rows, and the others to study what is missing.",
        lambda t: t.versions > 0),
    # Panels
    say(HOW, "## Rows of one unit belong together `{}` names the unit of a row; the numbers are "
        "new and mean nothing else. Rows of a unit are in the order of `{}`, at most {#} of "
        "them, and depend on each other.", lambda t: t.panel is not None),
    say(HOW, "Replicate weights are those of whole units, so intervals from them hold that, and "
        "nothing is to be clustered.", lambda t: t.panel is not None and t.replicates > 0),
    say(HOW, "Every table has units of its own, so the spread between tables holds that; the "
        "rule below needs no more.", lambda t: t.panel is not None and t.own_noise),
    say(HOW, "Cluster standard errors by {*} for questions about rows.",
        lambda t: t.panel is not None and t.tables > 1 and not t.own_noise),
    say(HOW, "How one row leads to the next was measured for all positions together. Given the "
        "row before, what is fixed, the number of rows and how many are left, earlier rows of a "
        "`{}` tell nothing more: analyses that look further back than one row find no relation "
        "that was measured.",lambda t: t.has("noisy-counts") and bool(t.panel and t.panel.pooled)),
    # Preprocessing
    say(HOW, "## What was done to the original before it was counted", preprocessed),
    *(say((HOW, QUALITY), words, holds) for words, holds in PREPROCESSING),
    say(HOW, "How many rows and values this concerned is confidential, and not stated here.",
        preprocessed),
    say(HOW, "`QUALITY.md` has the number of units that were cut, with noise.",
        lambda t: bool(t.flag("--quality")) and t.unit),
    # Dependence of rows
    say(HOW, "## Rows are not independent draws Noisy counts of the original were published "
        "once, and rows were drawn from them so that the counts in a table come out nearly as in "
        "the model, up to a few rows and not up to sampling error. So rows depend on each other: "
        "- Estimates from a table are what they seem. Tests and standard errors that treat its "
        "rows as a sample do not know this; a test of fit finds the table too good.",
        lambda t: t.shared_noise),
    say(HOW, "Tables of one release differ less than independent samples would. Their variance b "
        "is about drawing alone, and understates the error of the estimates: a small b is no "
        "sign that they are precise. Do not use the rule `fully` here: it subtracts v from b.",
        lambda t: t.shared_noise and t.tables > 1),
    say(HOW, "## Rows are not independent draws Noisy counts of the original were published "
        "once, and rows were drawn from them. Tests and standard errors that treat rows as a "
        "sample do not know this: use the replicate weights.", lambda t: t.replicates > 0),
    say(HOW, "Rows come in random order: a part of a table is a random part of it, with sampling "
        "error.", lambda t: t.released and not t.own_noise and (t.panel is None)),
    say(HOW, "Units come in random order: some of them, with all their rows, are a random part, "
        "with sampling error.",
        lambda t: t.released and not t.own_noise and (t.panel is not None)),
    say(HOW, "## Every table has noise of its own Noisy counts of the original were published "
        "once. Each table was drawn from a copy of them with fresh sampling and fresh noise of "
        "the same size. So the tables differ as estimates from the original would, and their "
        "spread tells how precise they are. One of them alone is noisier than a table that is "
        "drawn from the published counts themselves: use all of them together.",
        lambda t: t.own_noise),
    say(HOW, "## Blank values {} are blank in rows whose combination was rare among the "
        "synthetic rows. This is policy (see `PRIVACY.md`). Blank values are not missing at "
        "random: rare combinations are underrepresented, and no rule corrects that.",
        lambda t: bool(t.flag("--k"))),
    say((HOW, README), "## Missing values",
        lambda t: bool(missing_codes(t, kept=True) or missing_codes(t, kept=False))),
    say((HOW, README), "- {} that a value is missing; blank in the tables here.",
        lambda t: missing_codes(t, kept=False)),
    say((HOW, README), "- {} that a value is missing; kept as it was.",
        lambda t: missing_codes(t, kept=True)),
    # Estimates
    say(HOW, "of original rows that were counted.",
        lambda t: t.replicates > 0 and not t.flag("--where")),
    say(HOW, "of original rows that have the requested values.",
        lambda t: t.replicates > 0 and bool(t.flag("--where"))),
    say(HOW, "## Intervals: use the replicate weights Rows count alike, so **estimates need no "
        "weight**. For intervals every row has {#} replicate weights, `{}` to `{}`, which lie "
        "around the weight `{}` that all rows share. {*} Each column of weights adds up to about "
        "the number {*} Do the analysis once more with each of the replicates. Let q be the "
        "estimate and q_k those with the replicates: - estimate: q - variance: T = {#} x sum of "
        "(q_k - q)^2, with {#} degrees of freedom Replicates have a part f = {#} of the sampling "
        "error and of the noise that protects people, so that weights stay near each other; {#} "
        "is 1/({#} f^2), which makes up for that. `pegsynth.replicated` does this, and in R the "
        "package survey. Code for both is below, and is run by the tests of pegsynth. In Stata: "
        "`{*}`. In SAS: `VARMETHOD=BRR(FAY={#})` and `REPWEIGHTS {}`. These two were never run.",
        lambda t: t.replicates > 0),
    say(HOW, "They are in `{*}`, whose lines are those of `{*}` in the same order: its column "
        "`row` numbers them from 1 on.",
        lambda t: t.replicates > 0 and not t.flag("--weights-inside")),
    say(HOW, "The table has them as its last columns.",
        lambda t: t.replicates > 0 and bool(t.flag("--weights-inside"))),
    say(HOW, "## One table has no standard errors Analyse the table as if it were the original: "
        "estimates are what they seem. Standard errors are not. They cannot be estimated from "
        "one {} table, which does not tell how much drawing it again would change them; those "
        "that your software prints are too small.", lambda t: one_table(t) and not t.virtual),
    say(HOW, "Ask the publisher for a release with `--replicates` if you need "
        "them.",
        lambda t: one_table(t) and t.released and (not (t.two_tables or (t.panel and
        t.panel.pooled)))),
    say(HOW, "Ask the publisher for a release with `--datasets` if you need them.",
        lambda t: one_table(t) and not t.virtual and bool(not t.released or t.two_tables or
        (t.panel and t.panel.pooled))),
    say(HOW, "## One table has no standard errors Virtual rows that protect people pull this "
        "table towards a prior distribution, and estimates from it with them: the more, the "
        "fewer rows stand behind a figure, which is confidential. So no standard error or "
        "interval can be given, and more tables would be pulled alike. Do not test hypotheses "
        "with this table. A release by `pegs-once` with `--replicates` has intervals that hold.",
        lambda t: one_table(t) and t.virtual),
    say(HOW, "## These tables have no intervals {*} A release by `pegs-once` with `--replicates` "
        "has intervals that hold.", lambda t: t.no_intervals),
    say(HOW, "## Combine the tables Analyse each table as if it were the original, then combine "
        "the {#} results. Let q be the mean of the estimates, b their variance between tables "
        "(divisor K - 1) and v the mean of their variances; K = {#} and n = {#} rows. The rule "
        "that fits this release is", lambda t: combined(t) and not t.own_noise),
    say(HOW, "## Combine the tables Analyse each table as if it were the original, then combine "
        "the {#} results. Let q be the mean of the estimates and b their variance between tables "
        "(divisor K - 1); K = {#}. The rule that fits this release is",
        lambda t: combined(t) and t.own_noise),
    say(HOW, "**plug-in**, because all datasets were drawn from the same released counts, and "
        "the noise on these is in no interval:", lambda t: t.shared_noise and combined(t)),
    say(HOW, "**plug-in**, because the datasets do not share a drawn parameter:",
        lambda t: combined(t) and not t.released and not t.kept),
    say(HOW, "**partial**, because some columns hold original values:",
        lambda t: combined(t) and bool(t.kept)),
    say(HOW, "**own-noise**, because every dataset has sampling and noise of its own:",
        lambda t: combined(t) and t.own_noise),
    say(HOW, "- estimate: q - variance: T = (n/N) v + b/K",
        lambda t: combined(t) and plug_in(t) and not t.kept),
    say(HOW, "- estimate: q - variance: T = v + b/K", lambda t: combined(t) and bool(t.kept)),
    say(HOW, "- estimate: q - variance: T = (1 + 1/K) b, with K - 1 degrees of freedom",
        lambda t: t.own_noise),
    say(HOW, "`pegsynth.combine` does this and adds degrees of freedom and intervals. For "
        "estimates in a file with the columns term, estimate, and variance or std_error, so does "
        "`pegs combine FILE --ledger privacy.json --rows {#}`.",
        lambda t: combined(t) and can_combine(t)),
    say(HOW, "`pegsynth.combine` does this and adds degrees of freedom and intervals, once N is "
        "known. For estimates in a file with the columns term, estimate, and variance or "
        "std_error, so does `pegs combine FILE --ledger privacy.json --rows {#} --rows-in N`.",
        lambda t: combined(t) and not can_combine(t)),
    say(HOW, "## Combine the completed tables {*} Let q be the mean of all estimates, {*} "
        "**nested**, because {*}, and missing values were imputed in each: - estimate: q {*} / "
        "(K - 1))", lambda t: t.versions > 0 and t.tables > 1 and not t.own_noise),
    say(HOW, "## Combine the completed tables Analyse each of the {#} completed tables as if it "
        "were the original, then combine the results. K = {#} tables, r = {#} versions of each, "
        "and n = {#} rows. First take the mean of the {#} estimates of each table. Let q be the "
        "mean of these {#} means and b their variance (divisor K - 1). The rule that fits this "
        "release is **own-noise**, because every dataset has sampling and noise of its own; the "
        "spread of imputing is in b:", lambda t: t.versions > 0 and t.own_noise),
    say(HOW, "`pegsynth.combine` does this with `imputations={#}`.",
        lambda t: t.versions > 0 and t.tables > 1),
    say(HOW, "For estimates in a file with the columns term, dataset, imputation, {*} are wrong "
        "here.", lambda t: t.versions > 0 and t.tables > 1 and not t.own_noise),
    say(HOW, "N, the number of original rows, was stated by the publisher to be 300.",
        lambda t: needs_rows_in(t) and bool(t.flag("--rows-in"))),
    say(HOW, "N, the number of original rows, is not part of this release. Standard errors need "
        "it, exact or rounded: if the publisher has made it known, write it after `rows_in =` "
        "below (and after `--rows-in`). Until then the code prints estimates only.",
        lambda t: needs_rows_in(t) and not t.flag("--rows-in")),
    # Code
    say(HOW, "## Code Run it in this folder.", lambda t: one_table(t) or t.two_tables),
    say(HOW, "## Code Run it in this folder, with `pegsynth` installed.",
        lambda t: not one_table(t) and not t.two_tables),
    say(HOW, "The same share in R:", lambda t: t.replicates > 0),
    say(HOW, "## In R, Stata and SAS The R code below is run by the tests of pegsynth; the code "
        "for Stata and SAS is shown, and was never run. All three compute the estimate alone.",
        r_code),
    say(HOW, "## In Stata and SAS The code for Stata and SAS is shown, and was never run.",
        sas_code),
    say(HOW, "In R, for a `fit` that takes a table, such as `{*}`, and the number of original "
        "rows `N`. It was not run for this page.",
        lambda t: t.versions > 0 and t.tables > 1 and not t.own_noise),
    # Declared analyses and tables
    say(HOW, "## Declared analyses - `{*}` ({}) These were declared before the table was read.",
        lambda t: t.analyses),
    say(HOW, "The sums that they need were measured with noise (`noisy-sums` in `privacy.json`), "
        "and the values of the rows agree with them.", sums),
    say(HOW, "The replicate weights have that noise in them.",
        lambda t: sums(t) and t.replicates > 0),
    say(HOW, "The tables have that noise in them.", lambda t: sums(t) and t.own_noise),
    say(HOW, "Numbers were clipped at both ends before they were added up, at bounds that were "
        "paid for: what lies beyond comes from the model.",
        lambda t: sums(t) and bool(summed(t) & {"n", "s"})),
    say(HOW, "This method measures nothing for them: look at them as at any other.",
        lambda t: t.analyses and not sums(t)),
    say(HOW, "Their columns: {*} In Python:",
        lambda t: declared_code(t) and any(f.label for f in t.schema.features)),
    say(HOW, "In Python:", declared_code),
    say(HOW, "The same in R, after the R code above. A blank cell of a column with categories is "
        "the category \"(missing)\"; rows without a number that an analysis needs are left out.",
        declared_code),
    say(HOW, "And in Stata, after the Stata code above:",
        lambda t: declared_code(t) and sas_code(t)),
    say(HOW, "## If a column is a survey weight It was synthesized like any other number. For "
        "estimates about the population multiply it into the", numbers_written),
    say(HOW, "weights here: with a survey weight w, use w times {} and w times each of the "
        "replicates in their place. The intervals then hold the sampling of rows and the noise, "
        "and not strata or clusters of the survey, of which the table knows nothing.",
        lambda t: numbers_written(t) and t.replicates > 0),
    say(HOW, "analysis as you would with the original. Strata and clusters of the survey are not "
        "in the tables.", lambda t: numbers_written(t) and t.replicates == 0),
    say(HOW, "## Tables of counts - `table-1.csv`: {} Take counts of these tables from these "
        "files, not from rows. {*} `shrunk` is pulled towards the model: nearer on average, "
        "without an interval of its own.", lambda t: bool(t.schema.tables_wanted)),
    # Limits
    say(HOW, "## What the table does not tell", lambda t: t.shared_noise and t.tables == 1),
    say(HOW, "The noise that protects people was drawn once. It moves all estimates, the more "
        "the smaller epsilon and the smaller the group, and nothing in the rows tells how far. "
        "`privacy.json` says how large it is on every count, and of which features each noisy "
        "table is. Relations between features that no published table supports are filled in as "
        "if they were not there.", lambda t: t.shared_noise),
    say(HOW, "No combining rule covers either.", lambda t: t.shared_noise and t.tables > 1),
    say(HOW, "The intervals are about sampling and synthesis only.",
        lambda t: plug_in(t) and can_combine(t)),
    say(HOW, "Intervals that the rule gives once N is known are about sampling and synthesis "
        "only.", lambda t: plug_in(t) and not can_combine(t)),
    say(HOW, "## What no rule covers",
        lambda t: bool(t.replicates) or (t.tables > 1 and not t.no_intervals)),
    say(HOW, "Sampling error and the noise that protects people are in the intervals. Relations "
        "between features that no published table supports are not: they are filled in as if "
        "they were not there, everywhere alike. An interval for such a relation is **not "
        "supported**, however it was made. `privacy.json` says of which features each noisy "
        "table is: state the analysis, as", lambda t: bool(t.replicates) or t.own_noise),
    say(HOW, "`pegsynth.replicated(.., ledger=ledger, analysis=\"y ~ x\")` or `pegs combine "
        "--analysis \"y ~ x\"`, and a note says whether published tables support it.",
        lambda t: bool(t.replicates)),
    say(HOW, "`pegsynth.combine(.., ledger=ledger, analysis=\"y ~ x\")` or `pegs combine "
        "--analysis \"y ~ x\"`, and a note says whether published tables support it.",
        lambda t: t.own_noise),
    say(HOW, "Virtual rows that protect people pull every table towards a prior distribution. No "
        "combining rule corrects that bias.",
        lambda t: t.virtual and t.tables > 1 and not t.no_intervals),
    say(HOW, "Whatever the method gets wrong about the original, it gets wrong in every table "
        "alike.",
        lambda t: t.tables > 1 and not t.released and not t.virtual),
    say(HOW, "Imputed values follow the other features of their row, as far as the synthetic "
        "rows show it. If values are missing for reasons that no other feature tells, completed "
        "tables are off, and no rule says how far.", lambda t: t.versions > 0),
    # README.md
    say(README, "# Synthetic tables",lambda t: not t.about and not t.resampled and not t.kept),
    say(README, "# Resampled tables", lambda t: not t.about and t.resampled),
    say(README, "# Partly synthetic tables", lambda t: not t.about and bool(t.kept)),
    say(README, "# Invented visits", stated("title")),
    say((README, CROISSANT, DCAT, REGISTRY), "Visits that nobody made.", stated("description")),
    *(say(README, words, holds) for words, holds in MARKS),
    say(README, "**In short.** A program made these tables from a model of a confidential table, "
        "which stays with its owner; no row describes anybody. Whoever guesses from this folder "
        "whether a given {} is in the original, and would be right half of the time without it, "
        "is right at most {#}% of the time. Totals, shares and relations can be trusted as far as "
        "`QUALITY.html` says; single rows and small groups cannot.", lambda t: t.private),
    say(README, "## Promise This release carries no privacy guarantee; `PRIVACY.md` says why.",
        lambda t: t.guarantee["kind"] == "none"),
    say(README, "## Promise This release is l-diverse, and not differentially private; see "
        "`PRIVACY.md`.", lambda t: t.guarantee["kind"] == "l-diversity"),
    say(README, "## Promise One {} is protected: differential privacy with epsilon = {#} at "
        "delta = {#} ({}). `PRIVACY.md` says what that means, and what is assumed.",
        lambda t: t.private and t.guarantee["delta"] > 0),
    say(README, "## Promise One {} is protected: differential privacy with epsilon = {#} ({}). "
        "`PRIVACY.md` says what that means, and what is assumed.",
        lambda t: t.private and t.guarantee["delta"] == 0),
    say(README, "## Tables {*} Read `HOW-TO-ANALYSE.md` before you estimate anything.", always),
    say(README, "One row stands for one visit.",
        lambda t: "row" in t.about and not t.two_tables and not t.flag("--wide")),
    say(README, "One row of `persons` stands for one visit.",
        lambda t: "row" in t.about and t.two_tables),
    say(README, "One row stands for one patient.",
        lambda t: "unit" in t.about and bool(t.flag("--wide"))),
    say(README, "## Columns", lambda t: 2 if t.two_tables else 1),
    say(README, "of households", lambda t: t.two_tables),
    say(README, "of persons", lambda t: t.two_tables),
    say(README, "With values of the original rows: {}.", lambda t: bool(t.kept)),
    say(README, "## Files", always),
    say(README, "## Not stated Nobody stated {}. Fields of catalogues that need them are left "
        "out.", lambda t: not t.about),
    # QUALITY.md
    say(QUALITY, "# What these tables can be trusted for", always),
    say(QUALITY, "{#} of {#} pairs of features are supported by a published table.",
        lambda t: bool(t.quality["published_tables"])),
    say(QUALITY, "For single features the total variation distance to the original is at most "
        "{#}% (the largest upper end of the intervals below): so many of the rows would have to "
        "change. For pairs the total variation distance to the original is at most {#}% (the "
        "largest upper end of the intervals below): so many of the rows would have to change.",
        lambda t: bool(t.flag("--quality"))),
    say(QUALITY, "This page follows from the schema and the ledger. Nothing was computed from "
        "the original for it, so that it may be published with the tables and costs nothing.",
        lambda t: not t.flag("--quality")),
    say(QUALITY, "This page follows from the schema and the ledger, but for the figures that "
        "were paid for. Nothing else was computed from the original for it, so that it may be "
        "published with the tables and costs nothing more.", lambda t: bool(t.flag("--quality"))),
    say(QUALITY, "This method publishes no tables of counts. Which pairs of features its rows "
        "support, and how precisely, is in no public figure; `privacy.json` lists every event "
        "with its noise or virtual rows. Treat relations between features as unconfirmed.",
        lambda t: not t.quality["published_tables"]),
    say(QUALITY, "Pairs and triples that no published table supports are filled in as if the "
        "features were independent given those that are supported: their relations are not "
        "information.",
        lambda t: bool(t.quality["published_tables"] and t.quality["pairs_not_held"])),
    say(QUALITY, "Triples that no published table supports are filled in as if the features were "
        "independent given those that are supported: their relations are not information.",
        lambda t: bool(t.quality["published_tables"]) and (not t.quality["pairs_not_held"]) and
        (len(t.quality["triples_held"]) < t.quality["triples_in_all"])),
    say(QUALITY, "Where categories were merged, a table tells merged categories apart and no "
        "more.", lambda t: any(each["merged"] for each in t.quality["published_tables"])),
    say(QUALITY, "A group is called trusted where noise moves its count by at most 10%, 95 times "
        "in 100; what drawing rows adds is not in it.",
        lambda t: any(each["noise_sd"] is not None for each in t.quality["features"])),
    say(QUALITY, "A part of the budget paid for noisy distances between the original and these "
        "tables (R34); they are in the ledger. A distance is half the sum over the cells of a "
        "table of |original count - synthetic count scaled to the noisy number of rows|. The "
        "noise is in the intervals; they hold 95 times in 100. Rows of the original that were "
        "counted: {#} ({#} to {#}).", lambda t: bool(t.flag("--quality"))),
    say(QUALITY, "Units with more rows than were counted of them: {#} ({#} to {#}).",
        lambda t: bool(t.flag("--quality")) and t.unit),
    say(QUALITY, "It was published because the upper ends of these intervals meet criteria that "
        "were stated before: single at most 100.00%, table at most 100.00%. Checking them cost "
        "nothing more than the figures; a release that fails is paid for as well.",
        lambda t: bool(t.flag("--accept"))),
    say(QUALITY, "## Total variation distances that were paid for, with 95 % intervals",
        lambda t: bool(t.flag("--quality"))),
    say(QUALITY, "## Groups of one feature, by the best published count",
        lambda t: any(each["noise_sd"] is not None for each in t.quality["features"])),
    say(QUALITY, "## Published tables", lambda t: bool(t.quality["published_tables"])),
    say(QUALITY, "## Pairs of features", lambda t: bool(t.quality["published_tables"])),
    say(QUALITY, "(the first 10 of {#} rows)", more_than_ten),
    say(QUALITY, "All of them are in `QUALITY.json`.", more_than_ten),
    say(QUALITY, "## Triples that a published table supports, {#} of {#}",
        lambda t: bool(t.quality["triples_held"])),
    # dp-registry.yaml
    say(REGISTRY, "A record for the registry of differential-privacy deployments; look it "
        "through before ~ you send it in. Whether the underlying data grow (data_source_type) is "
        "not known here.", always),
    say(REGISTRY, "Needed by the registry, and stated by nobody: {}.", lambda t: not t.about),
    say(REGISTRY, "Left out, because nobody stated it: {}.", lambda t: not t.about),
    say(REGISTRY, MARKS[0][0], lambda t: not t.about),
    say((CROISSANT, DCAT), MARKS[0][0], always),
    say((REGISTRY, CROISSANT, DCAT), "1 table of {#} rows; {#} features.",
        lambda t: t.tables == 1 and not folded(t)),
    say((REGISTRY, CROISSANT, DCAT), "{#} tables of {#} rows each; {#} features.",
        lambda t: t.tables > 1 and not folded(t)),
    say((REGISTRY, CROISSANT, DCAT), "1 table of {#} rows, one for each unit; {#} features.",
        lambda t: folded(t) and t.panel is None),
    say((REGISTRY, CROISSANT, DCAT), "1 table with {#} rows, those of {#} units ({}); {#} "
        "features.", lambda t: t.panel is not None and not t.two_tables and t.tables == 1),
    say((REGISTRY, CROISSANT, DCAT), "{#} tables with {*} rows each, those of {#} units ({}); {#} "
        "features.", lambda t: t.panel is not None and not t.two_tables and t.tables > 1),
    say((REGISTRY, CROISSANT, DCAT), "2 tables: {} with {#} units ({}), one in a row, and {} with "
        "their {#} rows; {#} features.", lambda t: t.two_tables and t.tables == 1),
    say((REGISTRY, CROISSANT, DCAT), "{#} pairs of tables: {} with {#} units ({}), one in a row, "
        "and {} with their {*} rows each; {#} features.", lambda t: t.two_tables and t.tables > 1),
    say(REGISTRY, "All tables of any number of rows with the features {}; schema.toml lists "
        "their categories and bins.", lambda t: not t.about),
    say(REGISTRY, "All tables of any number of rows, one for each visit, with the features {}; "
        "schema.toml lists their categories and bins.", lambda t: bool(t.about)),
    say(REGISTRY, "Those of {} were measured.", lambda t: bool(t.private_edges or t.found)),
    say(REGISTRY, "None in the tables. Assumed to be public: {*}. ~", always),
    say(REGISTRY, "Adjacent tables differ by adding or removing one row.",
        lambda t: not t.unit and not t.about),
    say(REGISTRY, "Adjacent tables differ by adding or removing one row (visit).",
        lambda t: not t.unit and bool(t.about)),
    say(REGISTRY, "Adjacent tables differ by adding or removing one {} with all its rows, of "
        "which at most {#} count; the limit was enforced when the table was read.",
        lambda t: t.unit),
    say(REGISTRY, "Totals for the whole release, rounded up; privacy.json lists every event "
        "behind them.", always),
    say(REGISTRY, "The publisher holds the original table, runs the program and publishes the "
        "folder public/; it is trusted with the data. Everybody may see what is published; "
        "nothing is assumed of what they know or how they compute.", lambda t: not t.about),
    say(REGISTRY, "Office of Invented Statistics holds the original table, runs the program and "
        "publishes the folder public/; it is trusted with the data. Everybody may see what is "
        "published; nothing is assumed of what they know or how they compute.",
        lambda t: bool(t.about)),
    say(REGISTRY, "Refresh, as stated: once a year", stated("refresh")),
    say((REGISTRY, CROISSANT, DCAT), "Visits without a date were left out.",
        stated("preprocessing")),
    say(REGISTRY, "Method, options and schema were chosen without looking at the table (assumed).",
        lambda t: not t.drafted and not t.drafted_rules),
    say(REGISTRY, "Method and options were chosen without looking at the table (assumed). Parts "
        "of the schema were first read off a table ({}); its reviewer declared them to be public "
        "knowledge.", lambda t: t.drafted or t.drafted_rules),
    *(
        say(
            REGISTRY,
            f"discrete {shape} noise on {what}",
            lambda t, kind=kind, shape=shape: t.has(kind, mechanism=f"discrete-{shape.lower()}"),
        )
        for shape in ("Gaussian", "Laplace")
        for kind, what in (
            ("noisy-residuals", "residuals of counts"),
            ("noisy-sums", "sums of clipped values"),
            ("noisy-counts", "counts"),
        )
    ),
    say(REGISTRY, "choices by the exponential mechanism", lambda t: t.has("selection")),
    say(REGISTRY, "categories found by noisy counts above a threshold", lambda t: bool(t.found)),
    say(REGISTRY, "draws from counts with virtual rows (bounded range)",
        lambda t: t.virtual and not t.has("pmi")),
    say(REGISTRY, "draws from fitted models mixed with virtual rows (bounded range)",
        lambda t: t.has("pmi")),
    say(REGISTRY, "Implemented by {*}).", always),
    say(REGISTRY, "Mechanisms work in exact integer arithmetic: no floating point lies between "
        "the data and their output.", lambda t: not t.has("pmi")),
    say(REGISTRY, "Draws are exact. The models that they are from are fitted in floating point; "
        "their price does not depend on what a fit gives.", lambda t: t.has("pmi")),
    say(REGISTRY, "Random numbers are AES in counter mode with a key from the operating system. "
        "Timing is not protected; the release is not interactive.", always),
    say(REGISTRY, "Sequential: the epsilons of all events add up",
        lambda t: not t.has("noisy-counts", mechanism="discrete-gaussian")),
    say(REGISTRY, "Sequential, in zero-concentrated differential privacy: the rhos of all events "
        "add up", lambda t: t.has("noisy-counts", mechanism="discrete-gaussian")),
    say(REGISTRY, ", what was left unspent included", lambda t: t.has("unspent")),
    say(REGISTRY, ", and are converted once at the stated delta.",
        lambda t: t.has("noisy-counts", mechanism="discrete-gaussian") and not t.found),
    say(REGISTRY, ", and are converted once at what finding categories leaves of the stated "
        "delta.", lambda t: bool(t.found)),
    say(REGISTRY, "Rows are drawn from what was paid for; codes become values.", always),
    say(REGISTRY, "Weights of rows are fitted to the noisy counts and to replicates of them.",
        lambda t: t.replicates > 0),
    say(REGISTRY, "Missing values of completed tables are imputed from synthetic rows.",
        lambda t: t.versions > 0),
    say(REGISTRY, "Rare combinations of {} are blanked.", lambda t: bool(t.flag("--k"))),
    say(REGISTRY, "n is rounded to multiples of 5.", lambda t: bool(t.flag("--round"))),
    say(REGISTRY, "Agreed beforehand.", stated("why_epsilon")),
    say((REGISTRY, CROISSANT), "Rows are synthetic and may not be linked to people.", always),
    say((REGISTRY, CROISSANT), "Small groups carry more noise than large ones, and relations "
        "that no published table supports are not there: QUALITY.json lists what is supported, "
        "and how precisely.", lambda t: t.released),
    say((REGISTRY, CROISSANT), "Virtual rows pull the tables towards a prior distribution, small "
        "groups the most.", lambda t: not t.released),
    say((REGISTRY, CROISSANT), "Standard errors need the rules of HOW-TO-ANALYSE.md.",
        lambda t: bool(t.replicates) or (t.tables > 1 and not t.no_intervals)),
    say((REGISTRY, CROISSANT), "No standard errors can be estimated from them: see "
        "HOW-TO-ANALYSE.md.", lambda t: one_table(t) or t.no_intervals),
    # croissant.json and dcat.jsonld
    say(CROISSANT, "All rows were drawn by pegsynth {*}, method {}.", always),
    say(CROISSANT, "Completed tables: missing values were imputed from synthetic rows alone.",
        lambda t: t.versions > 0),
    say(CROISSANT, "Further releases, as stated: once a year. To be reviewed by 2031-05-01.",
        stated("refresh")),
    say((CROISSANT, DCAT), "One {} of the original table is protected by differential privacy "
        "with epsilon = {#} at delta = {#} ({} by public thresholds); privacy.json lists every "
        "event.", lambda t: t.private and t.guarantee["delta"] > 0),
    say((CROISSANT, DCAT), "One {} of the original table is protected by differential privacy "
        "with epsilon = {#} ({} by public thresholds); privacy.json lists every event.",
        lambda t: t.private and t.guarantee["delta"] == 0),
    say((CROISSANT, DCAT), "Entropy l-diversity, and no differential privacy.",
        lambda t: t.guarantee["kind"] == "l-diversity"),
    say(DCAT, "Done beforehand:", stated("preprocessing")),
    # PRIVACY.md
    say(PRIVACY, "This release carries no privacy guarantee. What stands in the way is listed "
        "below as not covered.", lambda t: t.guarantee["kind"] == "none"),
    say(PRIVACY, "This release is not differentially private. Every distribution drawn from has "
        "entropy of at least log l, with l = {#}.",lambda t: t.guarantee["kind"] == "l-diversity"),
    say(PRIVACY, "This release as a whole is differentially private with epsilon = {#} (delta = "
        "0).", lambda t: t.private and t.guarantee["delta"] == 0),
    say(PRIVACY, "This release as a whole is differentially private with epsilon = {#} at delta "
        "= {#}.", lambda t: t.private and t.guarantee["delta"] > 0),
    say(PRIVACY, "All this may fail with a chance of {#}.",
        lambda t: t.private and t.guarantee["delta"] > 0),
    say(PRIVACY, "A guess whether a given {} is in the table, right half of the time without this "
        "release, is right at most {#} % of the time with it.", lambda t: t.private),
    say(PRIVACY, "A cell that counts fewer than {#} (each one {}) cannot be told from an empty "
        "one: a guess which of the two it is, right half of the time without this release, is "
        "right at most 95 % of the time with it.", small_cells),
    say(PRIVACY, "No cell is so small that it cannot be told from an empty one: of a single {} a "
        "guess may be right more than 95 % of the time.",
        lambda t: t.private and not small_cells(t)),
    say(PRIVACY, "The draws cost {#} per synthetic row, which is how the original paper counts "
        "epsilon; the figure for the whole release is the one above.",
        lambda t: t.guarantee["epsilon_per_row"] is not None),
    say(PRIVACY, "is protected, with all rows of that {} (at most {#}; the limit was enforced "
        "when the table was read).", lambda t: t.private and t.unit),
    say(PRIVACY, "is protected: one row of the original table. The promise compares the table "
        "with the table that has one row more or less. A person with several rows is protected "
        "less.", lambda t: t.private and not t.unit and ("unit" not in t.about)),
    say(PRIVACY, "The publisher states so; no unit column enforced it, and a patient with "
        "several rows is protected less.",
        lambda t: t.private and not t.unit and ("unit" in t.about)),
    say(PRIVACY, "AMBER: delta is above", lambda t: t.private and t.guarantee["delta"] > 1e-06),
    say(PRIVACY, "RED: epsilon is above 10.",lambda t: t.private and t.guarantee["epsilon"] > 10),
    say(PRIVACY, "AMBER: epsilon is above 1.",
        lambda t: t.private and 1 < t.guarantee["epsilon"] <= 10),
    say(PRIVACY, "Green: epsilon is at most 1,",
        lambda t: t.private and t.guarantee["epsilon"] <= 1),
    say(PRIVACY, "Why this epsilon: Agreed beforehand.", stated("why_epsilon")),
    say(PRIVACY, "Not stated by the publisher: {}.", lambda t: not t.about),
    say(PRIVACY, "Not covered: -", lambda t: bool(t.ledger["not_covered"])),
    say(PRIVACY, "the reviewer of the schema declared", lambda t: t.schema.reviewed),
    say(PRIVACY, "its categories",
        lambda t: t.schema.reviewed and any(not f.binned and
        not f.private_categories for f in t.schema.features)),
    say(PRIVACY, "bin edges", lambda t: t.schema.reviewed and listed_edges(t)),
    say(PRIVACY, "bounds of values",
        lambda t: t.schema.reviewed and any(f.private_edges and
        (f.lowest, f.highest) != (None, None) for f in t.schema.features)),
    say(PRIVACY, "rows per unit",
        lambda t: t.schema.reviewed and bool(t.schema.unit) and not folded(t)),
    say(PRIVACY, "names and kinds of its features", lambda t: t.run.name == "all measured"),
    say(PRIVACY, "the schema marks features whose description was first read off a table ({})",
        lambda t: t.schema.reviewed and t.drafted),
    say(PRIVACY, "the schema marks rules that were first suggested by a table",
        lambda t: t.schema.reviewed and t.drafted_rules),
    say(PRIVACY, "- a value that the schema has no category for stops the command, so that only "
        "tables without such values are considered",
        lambda t: any(f.unknown == "error" for f in t.schema.features)),
    say(PRIVACY, "unlisted values of some features are one category of their own", unlisted),
    say(PRIVACY, "values were recoded row by row before counting, by rules that are public",
        lambda t: bool(recoded(t, "groups"))),
    say(PRIVACY, "the texts that some columns have for the codes of others are public",
        lambda t: any(c.label_of for c in t.schema.columns)),
    say(PRIVACY, "a date that is counted from another of its row",
        lambda t: any(f.after for f in t.schema.features)),
    say(PRIVACY, "all rows of one unit, and of no other, hold the same value in the column",
        lambda t: t.unit),
    say(PRIVACY, "were folded into one row before anything was counted", folded),
    say(PRIVACY, "how one row leads to the next was counted in one table for all positions",
        lambda t: bool(t.panel and t.panel.pooled)),
    say(PRIVACY, "the shares that the schema states for some features are public",
        lambda t: t.released and any(f.shares for f in t.schema.features)),
    say(PRIVACY, "the head features listed in the schema were chosen without looking at the data",
        lambda t: t.assumed("public-heads") is not None),
    say(PRIVACY, "head features follow the order of the features in the schema",
        lambda t: t.assumed("feature-order") is not None),
    say(PRIVACY, "which feature is a detail of which was stated in the schema",
        lambda t: any(f.parent for f in t.schema.features)),
    say(PRIVACY, "the rules of the schema, on combinations that cannot occur, are public and do "
        "not depend on the original table",
        lambda t: bool(t.schema.rules) and not t.drafted_rules),
    say(PRIVACY, "the rules of the schema, on combinations that cannot occur, are taken to be "
        "public, those included that a table suggested first", lambda t: t.drafted_rules),
    say(PRIVACY, "which features are made l-diverse, and their l, was stated",
        lambda t: bool(t.flag("--l"))),
    say(PRIVACY, "the values that some features are kept at in every row were chosen without "
        "looking at the original table", lambda t: bool(t.flag("--where"))),
    say(PRIVACY, "the number of original rows was stated to be 300",
        lambda t: bool(t.flag("--rows-in"))),
    say(PRIVACY, "- the method and all options of the run were chosen without looking at the "
        "original table", always),
    say(PRIVACY, "## What was done to the synthetic rows", lambda t: bool(t.flag("--k"))),
    say(PRIVACY, "This is policy, and no further protection: it was done to rows that are "
        "covered by the promise above already, and the promise would be the same without it.",
        lambda t: bool(t.flag("--k")) and t.private),
    say(PRIVACY, "This is policy. No result says that it protects anybody.",
        lambda t: bool(t.flag("--k")) and t.guarantee["kind"] == "none"),
    # internal/sign-off.html
    say(SIGNED, "The schema holds public knowledge only, and the person who reviewed it is known.",
        lambda t: t.schema.reviewed),
    say(SIGNED, "Nobody reviewed the schema: what it lists may be published all the same.",
        lambda t: not t.schema.reviewed),
    say(SIGNED, "What the schema marks as first read off a table is public knowledge from "
        "elsewhere: {}.", lambda t: t.drafted or t.drafted_rules),
    say(SIGNED, "The assumptions in PRIVACY.md are true.", always),
    say(SIGNED, "Earlier releases from the same table are in the budget book, and the sum is "
        "acceptable.", lambda t: t.run.book),
    say(SIGNED, "Earlier releases from the same table are added up, and the sum is acceptable.",
        lambda t: t.private and not t.run.book),
    say(SIGNED, "The epsilon was chosen before the internal report was read, or all tries are "
        "counted.", lambda t: t.private),
    say(SIGNED, "Nothing of internal/ leaves the house.", always),
    say(SIGNED, "The tables are fit for the purpose above, as the internal report shows.",
        stated("purpose")),
    say(SIGNED, "The tables are fit for their purpose, as the internal report shows.",
        lambda t: "purpose" not in t.about),
    say(SIGNED, "None was named: nothing adds this release to others from the same table.",
        lambda t: not t.run.book),
    say(SIGNED, "table.book, entry 1", lambda t: t.run.book),
    say(SIGNED, "None. Publishing these tables is a decision without a guarantee.",
        lambda t: t.guarantee["kind"] == "none"),
    say(SIGNED, "Entropy l-diversity, l = {#}; no differential privacy.",
        lambda t: t.guarantee["kind"] == "l-diversity"),
    say(SIGNED, "is protected: epsilon = {#}, delta = {#}.",lambda t: t.private and not t.unit),
    say(SIGNED, "is protected, with at most {#} rows: epsilon = {#}, delta = {#}.",
        lambda t: t.private and t.unit),
    say(SIGNED, "~ Not covered ~", lambda t: bool(t.ledger["not_covered"])),
    say(SIGNED, "~ What it means ~", lambda t: t.private),
    # internal/report.html
    say(REPORT, "If you rerun or choose because of what you read here, the guarantees add up;",
        lambda t: t.private),
)
# fmt: on
