"""Clusters of the tests' own, on the loopback interface, and workers that die once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from system import require

JAVA = "openjdk-17-jre-headless"


@contextmanager
def local_cluster() -> Iterator[object]:
    """Yield a session on a master and two workers in one process, executors of their own."""
    with _home() as home, _session("local-cluster[2,1,1024]", home) as spark:
        yield spark


@contextmanager
def standalone() -> Iterator[str]:
    """Yield the address of a master with two workers, each a process of its own."""
    with _home() as home, ExitStack() as daemons:
        port = _free_port()
        address = f"spark://127.0.0.1:{port}"
        _start(daemons, home, "master.Master", "--host", "127.0.0.1", "--port", port)
        _wait_for(port)
        for number in range(2):
            _start(
                daemons,
                home,
                "worker.Worker",
                *("--host", "127.0.0.1", "--cores", 1, "--memory", "1g"),
                *("--work-dir", home / f"work-{number}", address),
            )
        yield address


@contextmanager
def session_on(address: str) -> Iterator[object]:
    """Yield a session on a cluster that runs."""
    with _home() as home, _session(address, home) as spark:
        yield spark


@contextmanager
def _session(master: str, home: Path) -> Iterator[object]:
    from pyspark.sql import SparkSession

    # The JVM that PySpark starts outlives a session, and with it its environment.
    with mock.patch.dict(os.environ, _environment(home)):
        spark = (
            SparkSession.builder.master(master)
            .appName("pegsynth tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.executor.memory", "1g")
            .config("spark.log.level", "FATAL")
            .getOrCreate()
        )
        try:
            yield spark
        finally:
            gateway = spark.sparkContext._gateway
            spark.stop()
            _end(gateway)


def _end(gateway: object) -> None:
    """End the JVM of a session, so that the next has an environment of its own."""
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def _home() -> Iterator[Path]:
    """Yield a Spark home whose logs and work lie in a temporary folder."""
    import pyspark

    require(JAVA)
    home = Path(tempfile.mkdtemp(prefix="pegs-spark-"))
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _environment(home: Path) -> dict[str, str]:
    return {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }


def environment() -> dict[str, str]:
    """Return the environment of a program that starts a session of its own."""
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def _start(daemons: ExitStack, home: Path, name: str, *arguments: object) -> None:
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--webui-port", 0]
    with (home / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(part) for part in (*command, *arguments)],
            env={**os.environ, **_environment(home)},
            stdout=log,
            stderr=log,
        )
    daemons.callback(process.wait, 60)
    daemons.callback(process.terminate)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the master does not answer")


def dying(task: object, marker: str, generations: int) -> object:
    """Return a task that kills its executor, once, in the middle of its work.

    A Python worker is the child of a daemon, the daemon that of an executor, the executor
    that of a worker; `generations` of them above the daemon are killed.
    """

    def run(batches):
        for number, batch in enumerate(task(batches)):
            yield batch
            if number == 0:
                _die_once(marker, generations)

    return run


def _die_once(marker: str, generations: int) -> None:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    above = [os.getppid()]
    for _ in range(generations):
        status = Path(f"/proc/{above[-1]}/status").read_text()
        above.append(int(status.split("PPid:")[1].split()[0]))
    for process in reversed(above[1:]):
        os.kill(process, signal.SIGKILL)
