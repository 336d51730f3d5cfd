"""DataSynthesizer, correlated attribute mode; every column categorical with a public domain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from exchange import Job, serve


def prepare(job: Job) -> tuple[Path, Path]:
    """Write the table and the domain as the files it reads."""
    table, domains = job.folder / "train.csv", job.folder / "domains.json"
    job.frame().to_csv(table, index=False)
    domains.write_text(json.dumps({name: list(range(n)) for name, n in job.domain.items()}))
    return table, domains


def fit(job: Job, files: tuple[Path, Path]) -> Path:
    table, domains = files
    describer = DataDescriber(category_threshold=max(job.domain.values()) + 1)
    describer.describe_dataset_in_correlated_attribute_mode(
        str(table),
        k=job.settings["parents"],
        epsilon=job.epsilon,
        attribute_to_datatype=dict.fromkeys(job.domain, "Integer"),
        attribute_to_is_categorical=dict.fromkeys(job.domain, True),
        attribute_to_is_candidate_key=dict.fromkeys(job.domain, False),
        categorical_attribute_domain_file=str(domains),
        seed=job.seed,
    )
    description = job.folder / "description.json"
    describer.save_dataset_description_to_file(str(description))
    return description


def sample(job: Job, description: Path) -> Any:
    generator = DataGenerator()
    generator.generate_dataset_in_correlated_attribute_mode(
        job.rows, str(description), seed=job.seed
    )
    return generator.synthetic_dataset[list(job.domain)]


if __name__ == "__main__":
    serve(fit, sample, ("DataSynthesizer", "numpy", "pandas"), prepare)
