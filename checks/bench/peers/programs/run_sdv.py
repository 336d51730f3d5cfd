"""The Gaussian copula of SDV, every column categorical; no privacy, levels read off the data."""

from __future__ import annotations

from typing import Any

from exchange import Job, serve
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer


def fit(job: Job, frame: Any) -> Any:
    columns = {name: {"sdtype": "categorical"} for name in job.domain}
    metadata = Metadata.load_from_dict({"tables": {"table": {"columns": columns}}})
    model = GaussianCopulaSynthesizer(metadata)
    model.fit({"table": frame})
    return model


def sample(job: Job, model: Any) -> Any:
    return model.sample(job.rows)["table"][list(job.domain)]


if __name__ == "__main__":
    serve(fit, sample, ("sdv", "copulas", "rdt", "numpy", "pandas"))
