"""MST, AIM and PrivBayes of dpmm, on codes with their public domain; no binning."""

from __future__ import annotations

from typing import Any

from dpmm.pipelines import PIPELINE_DICT
from exchange import Job, serve


def fit(job: Job, frame: Any) -> Any:
    # Rounds are stated per column, since tables differ in width.
    settings = dict(job.settings)
    pipeline = PIPELINE_DICT[settings.pop("method")]
    limit = settings.pop("max_model_size", None)
    per_column = settings.pop("rounds_per_column", None)
    if per_column is not None:
        settings["rounds"] = per_column * len(job.domain)
    model = pipeline(
        epsilon=job.epsilon,
        delta=job.delta,
        max_model_size=limit,
        n_jobs=1,
        gen_kwargs=settings,
        disable_processing=True,
    )
    model.fit(frame, domain=job.domain)
    return model


def sample(job: Job, model: Any) -> Any:
    return model.generate(n_records=job.rows)[list(job.domain)]


if __name__ == "__main__":
    serve(fit, sample, ("dpmm", "numpy", "pandas", "scipy"))
