"""Fills in forms of the studio as a browser would, and waits for commands."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
from running import Client

from pegsynth.schema import Schema
from pegsynth.studio import jobs
from pegsynth.studio.project import Project


class Filler:
    """A user of one project, without a browser."""

    def __init__(self, folder: Path, client: Client) -> None:
        self.folder, self.client = folder, client.enter()
        self.send = self.client.send

    def wait(self):
        until = time.monotonic() + 240
        while (job := jobs.current(self.folder)).running and time.monotonic() < until:
            time.sleep(0.05)
        return job

    def drafted(self):
        """Put a draft there, without the command that makes it."""
        table = pl.read_csv(self.folder / "stays.csv")
        Schema.draft(table).save(self.folder / "schema.toml")
        Project(self.folder, data="stays.csv", may_see=True).save()
        return self

    def reviewed(self):
        self.drafted()
        self.send("/codebook", what="review", reviewer="A. Reviewer", declared="yes")
        assert self.client.get("/codebook").text.count("Reviewed by A. Reviewer") == 1
        return self
