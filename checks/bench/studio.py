"""How long the studio takes to start, and each of its pages at 200 columns.

``python -m checks.bench.studio [--columns N] [--runs N]`` prints a table. Start-up is from
the start of the process to the first page in full; a page is from the request to its last byte.
Beside the time that passed stands the processor time of the server, which does not depend on what
else the machine does.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from pegsynth.schema import Schema
from pegsynth.studio.project import Project

PAGES = ("table", "codebook", "codebook/1", "plan", "release", "results")
ROWS = 400
ASKED_START, ASKED_PAGE = 2.0, 0.3
REPEATS = 4


@dataclass(frozen=True)
class Server:
    """A studio that runs: its process, where it listens, and what it wants to be shown."""

    process: int
    host: str
    cookie: str

    def page(self, path: str) -> bytes:
        """Ask for a page and read it whole."""
        return ask(self.host, path, self.cookie)[1]

    @property
    def worked(self) -> float:
        """Processor seconds so far."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_project(folder: Path, columns: int) -> None:
    """Write a table, its codebook and a project on them."""
    table = pl.DataFrame(
        {f"q{n}": ["yes", "no", "no", "not known"] * (ROWS // 4) for n in range(columns)}
    )
    table.write_csv(folder / "stays.csv")
    replace(Schema.draft(table), reviewed=True).save(folder / "schema.toml")
    Project(folder, data="stays.csv", may_see=True).save()


@contextmanager
def started(folder: Path) -> Iterator[Server]:
    """Start the command; yield it once it has given its cookie."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pegsynth.cli.main", "studio", str(folder), "--no-browser"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline() if process.stderr is not None else ""
        found = re.search(r"http://\S+", line)
        if found is None:
            raise RuntimeError(line)
        address = urlsplit(found[0])
        answer, _ = ask(address.netloc, f"/?{address.query}", "")
        yield Server(process.pid, address.netloc, answer["set-cookie"].partition(";")[0])
    finally:
        process.terminate()
        process.wait(30)


def ask(host: str, path: str, cookie: str) -> tuple[http.client.HTTPMessage, bytes]:
    """Ask for a page and read it whole."""
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.headers, content


def measure(columns: int, runs: int) -> list[tuple[str, float, float, float]]:
    """Return what was measured: its name, median time, processor time, and what was asked for."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_project(folder, columns)
        starts = []
        for _ in range(runs + 1):
            began = time.monotonic()
            with started(folder) as server:
                server.page("/codebook")
                starts.append((time.monotonic() - began, server.worked))
        lines = [("start to the first page", *_medians(starts), ASKED_START)]
        with started(folder) as server:
            for page in PAGES:
                server.page(f"/{page}")
                worked, times = server.worked, []
                for _ in range(REPEATS * runs):
                    began = time.monotonic()
                    server.page(f"/{page}")
                    times.append(time.monotonic() - began)
                each = (server.worked - worked) / len(times)
                lines.append((page, statistics.median(times), each, ASKED_PAGE))
    return lines


def _medians(starts: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians without the first start, which is not warm."""
    passed, worked = zip(*starts[1:], strict=True)
    return statistics.median(passed), statistics.median(worked)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    print(f"| {chosen.columns} columns | median s | processor s | asked s |")
    print("|---|---|---|---|")
    for name, median, worked, asked in measure(chosen.columns, chosen.runs):
        print(f"| {name} | {median:.3f} | {worked:.3f} | {asked:g} |")


if __name__ == "__main__":
    main()
