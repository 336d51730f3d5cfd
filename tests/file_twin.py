"""Releases and models of a table whose noisy numbers are given, as bytes (R30).

Whatever two neighbouring tables differ in once their noisy numbers are the same was not
paid for. Random numbers are fixed without a seed, which would be written down.
"""

from __future__ import annotations

import io
import shutil
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

from pegsynth.auditing.watched import WatchedFilter
from pegsynth.cli import release_commands, working
from pegsynth.methods import released_blocks
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream
from pegsynth.request import Request

ROWS = 30
REQUEST = Request(rows=ROWS, method="pegs-once", epsilon=3.0, threads=1)


@dataclass
class Given:
    """Answers every step without a look at what went in."""

    step: int = 0

    def answer(self, event, inputs):
        self.step += 1
        if isinstance(event, NoisyCounts):
            return tuple(3 + (7 * self.step + 5 * cell) % 11 for cell in range(len(inputs)))
        return (self.step % len(inputs),)


@contextmanager
def given_numbers():
    """Let fitting get the same noisy numbers and the same random words, whatever the table."""
    plain = RandomStream.__init__

    def fixed(self, seed=None):
        plain(self, "the file twin" if seed is None else seed)
        self._seeded = seed is not None

    def budget_filter(*arguments, **options):
        return WatchedFilter(*arguments, answer=Given().answer, **options)

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(RandomStream, "__init__", fixed))
        fitted = partial(released_blocks.fit_released, filter_of=budget_filter)
        patches.enter_context(mock.patch.object(released_blocks, "fit_released", fitted))
        yield


def everything(build, schema, folder: Path, kind: str) -> dict[str, bytes]:
    """Return all that a table's release and its model consist of, and what was printed.

    Parameters
    ----------
    build
        Makes the table below a folder and returns what the commands are given.
    folder
        Used and emptied: both tables lie at the same place, whose name may be written.
    kind
        "csv" or "parquet".
    """
    shutil.rmtree(folder, ignore_errors=True)
    data, out = folder / "data", folder / "out"
    data.mkdir(parents=True)
    out.mkdir()
    schema.save(out / "schema.toml")
    said = io.StringIO()
    with given_numbers(), redirect_stdout(said), redirect_stderr(said):
        working.fit(build(data), out / "schema.toml", out / "model.pegs", REQUEST)
        shutil.rmtree(data)
        data.mkdir()
        release_commands.release(
            build(data),
            out / "schema.toml",
            out / "release",
            REQUEST,
            force=False,
            public_only=True,
            table_format=kind,
        )
    found = {"model.pegs": (out / "model.pegs").read_bytes(), "printed": said.getvalue().encode()}
    for path in (out / "release").rglob("*"):
        if path.is_file():
            found[str(path.relative_to(out / "release"))] = path.read_bytes()
    return found


def unlike(plain: dict[str, bytes], more: dict[str, bytes]) -> list[str]:
    """Return the names of the files that differ."""
    return sorted(name for name in {*plain, *more} if plain.get(name) != more.get(name))
