"""AIM and MST of OpenDP's `extras.mbi`, on codes with their public domain.

The zCDP budget is what OpenDP's own conversion makes of the total epsilon and delta. Rows are
drawn by the method "sample", as for other programs that stand on mbi.
"""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
import polars as pl
from exchange import Job, serve
from opendp.extras.mbi import AIM, MST

ALGORITHMS = {"aim": AIM, "mst": MST}
_HALVINGS = 60
_TAKEN_OFF = (0.0, 1e-9, 1e-6, 1e-3)
"""Parts of the budget that are left out, one after the other, until its own sums come out."""

dp.enable_features("contrib")


def fit(job: Job, frame: Any) -> Any:
    """Fit within the budget; a part of it may be refused because of how parts are rounded."""
    whole = rho_of(job.epsilon, job.delta)
    for taken_off in _TAKEN_OFF:
        try:
            return _fitted(job, frame, whole * (1 - taken_off))
        except dp.OpenDPException as error:
            refused = error
            if "insufficient budget" not in str(error):
                raise
    raise refused


def _fitted(job: Job, frame: Any, rho: float) -> Any:
    settings = dict(job.settings)
    algorithm = ALGORITHMS[settings.pop("method")](**settings)
    context = dp.Context.compositor(
        data=pl.LazyFrame(frame),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    keys = {name: list(range(levels)) for name, levels in job.domain.items()}
    return context.query().contingency_table(keys=keys, algorithm=algorithm).release()


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho that OpenDP converts to at most this epsilon at this delta."""
    low, high = 0.0, epsilon
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def _epsilon(rho: float, delta: float) -> float:
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    noise = dp.m.make_gaussian(*space, scale=(2 * rho) ** -0.5)
    return dp.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta)


def sample(job: Job, table: Any) -> Any:
    rows = table.synthesize(rows=job.rows, method="sample").select(list(job.domain))
    # A category for missing values is part of its model; where one was drawn it counts as 0.
    return rows.fill_null(0).to_numpy()


def prepare(job: Job) -> pl.DataFrame:
    return pl.DataFrame(job.codes.astype("int64"), schema=list(job.domain))


if __name__ == "__main__":
    serve(fit, sample, ("opendp", "mbi", "jax", "polars", "numpy"), prepare)
