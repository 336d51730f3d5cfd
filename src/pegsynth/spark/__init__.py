"""Fit and sample on a Spark cluster: ``pip install 'pegsynth[spark]'``, and Java 17.

`fit` counts a DataFrame where its rows are, with the counters of the local engine, and
brings only their sums to the driver. `sample` lets the workers draw and writes Parquet.
With a seed both give, bit for bit, what the local engine gives.

`pegsynth` must be installed for the Python that the workers run.
"""

from pegsynth.spark.cluster_fit import fit
from pegsynth.spark.sampling import sample

__all__ = ["fit", "sample"]
