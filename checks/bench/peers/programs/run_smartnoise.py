"""Synthesizers of smartnoise-synth; the domain is public, given by transformers fitted to it.

Rows are drawn by the method "sample" of mbi. Its default, "round", hands out the quantiles
of every column in the order of the rows, so that two columns with the same parent rise
together; that would be held against the wrong program.
"""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from exchange import Job, serve
from mbi import MarkovRandomField
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer
from snsynth.transform.table import TableTransformer


def fit(job: Job, frame: Any) -> Any:
    settings = dict(job.settings)
    if job.delta is not None:
        settings["delta"] = job.delta
    model = Synthesizer.create(settings.pop("method"), epsilon=job.epsilon, **settings)
    model.fit(frame, transformer=TableTransformer([_labels(n) for n in job.domain.values()]))
    return model


def _labels(levels: int) -> LabelTransformer:
    labels = LabelTransformer(nullable=False)
    labels.fit(list(range(levels)))
    return labels


def sample(job: Job, model: Any) -> Any:
    drawn = partialmethod(MarkovRandomField.synthetic_data, method="sample")
    MarkovRandomField.synthetic_data = drawn
    return model.sample(job.rows)[list(job.domain)]


if __name__ == "__main__":
    serve(fit, sample, ("smartnoise-synth", "mbi", "jax", "numpy", "pandas"))
