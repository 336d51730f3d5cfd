"""What the R package survey gives for the same weights."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from weighted_tables import PART, REPLICATES, weighted

import pegsynth
from pegsynth.inference import procedures
from system import require

CODE = """
suppressPackageStartupMessages({library(survey); library(survival)})
t <- read.csv("table.csv", stringsAsFactors = TRUE)
# A function of survey has a variable g of its own.
names(t)[names(t) == "g"] <- "group"
K <- REPLICATES
design <- svrepdesign(weights = ~pegs_weight, repweights = "^pegs_weight_[0-9]+$", data = t,
  type = "other", scale = 1/(K * PART^2), rscales = rep(1, K), combined.weights = TRUE, mse = TRUE)
design$degf <- K
put <- function(name, x) cat(name, sprintf("%.12g", as.numeric(x)), "\\n")
linear <- svyglm(y ~ x * group + I(x^2), design)
put("linear", coef(linear)); put("linear_cov", vcov(linear))
logistic <- svyglm(d ~ x + group, design, family = quasibinomial(), epsilon = 1e-12)
put("logistic", coef(logistic)); put("logistic_cov", vcov(logistic))
poisson <- svyglm(n ~ group + offset(log(x)), design, family = quasipoisson(), epsilon = 1e-12)
put("poisson", coef(poisson)); put("poisson_cov", vcov(poisson))
chi <- svychisq(~group + d, design, statistic = "F")
put("chi", c(chi$statistic, chi$parameter, chi$p.value))
rate <- svyby(~n, ~group, denominator = ~x, design, svyratio, keep.var = TRUE)
put("rate", coef(rate)); put("rate_se", SE(rate))
quantile_of <- function(p) as.numeric(coef(svyquantile(~y, design, p, ci = FALSE, qrule = "math")))
put("median", quantile_of(c(0.25, 0.5)))
# survey puts its interval around the share itself, which lies above p by up to one row.
for (p in c(0.25, 0.5)) {
  upto <- update(design, upto = as.numeric(y <= quantile_of(p)))
  half <- qt(0.975, K) * as.numeric(SE(svymean(~upto, upto)))
  put(paste0("ends_", p), quantile_of(c(p - half, p + half)))
}
km <- survfit(Surv(t, e) ~ 1, data = t, weights = pegs_weight)
put("km", summary(km, times = c(1, 4, 7))$surv)
""".replace("REPLICATES", str(REPLICATES)).replace("PART", repr(PART))


@pytest.fixture(scope="module")
def in_r(tmp_path_factory):
    require("r-base-core")
    require("r-cran-survey")
    folder = tmp_path_factory.mktemp("survey")
    weighted().write_csv(folder / "table.csv")
    ran = subprocess.run(
        ["Rscript", "-e", CODE],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines()]
    return {name: np.array(rest, dtype=float) for name, *rest in lines}


@pytest.mark.slow(seconds=8)
def test_regressions_and_their_covariances(in_r):
    frame = weighted()
    for name, found, order in (
        # R puts main effects of the formula in its own order: 1, x, gb, gc, x^2, x:gb, x:gc.
        ("linear", pegsynth.replicated("y ~ x*g + I(x^2)", frame), [0, 1, 2, 3, 4, 5, 6]),
        ("logistic", pegsynth.replicated("d ~ x + g", frame), [0, 1, 2, 3]),
        (
            "poisson",
            pegsynth.replicated("n ~ g", frame, family="poisson", exposure="x"),
            [0, 1, 2],
        ),
    ):
        values, size = np.array(list(found.params.values())), len(order)
        np.testing.assert_allclose(values, in_r[name][order], rtol=1e-6)
        matrix = in_r[f"{name}_cov"].reshape(size, size)[np.ix_(order, order)]
        np.testing.assert_allclose(found.cov_params(), matrix, rtol=1e-4, atol=1e-9)


@pytest.mark.slow(seconds=8)
def test_rao_scott(in_r):
    found = procedures.rao_scott("g", "d", weighted())
    test = found.test
    ours = [test.statistic, test.df_num, test.df_denom, test.pvalue]
    np.testing.assert_allclose(ours, in_r["chi"], rtol=1e-6)
    assert found.cells.names[:2] == ("[a][0]", "[a][1]")


@pytest.mark.slow(seconds=8)
def test_rates_quantiles_and_survival(in_r):
    frame = weighted()
    rate = pegsynth.replicated(procedures.rates("n", "x", by="g"), frame)
    np.testing.assert_allclose(list(rate.params.values()), in_r["rate"], rtol=1e-9)
    np.testing.assert_allclose(list(rate.bse.values()), in_r["rate_se"], rtol=1e-8)
    median = pegsynth.replicated(procedures.quantiles("y", [0.25, 0.5]), frame)
    np.testing.assert_allclose(list(median.params.values()), in_r["median"], rtol=1e-9)
    ends = np.transpose(median.combined.interval(0.95))
    np.testing.assert_allclose(ends, [in_r["ends_0.25"], in_r["ends_0.5"]], rtol=1e-9)
    curve = pegsynth.replicated(procedures.kaplan_meier("t", "e", [1, 4, 7]), frame)
    np.testing.assert_allclose(list(curve.params.values()), in_r["km"], rtol=1e-8)
