"""Clusters of the tests' own, on the loopback interface, and workers that die once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from system import require

JAVA = "openjdk-17-jre-headless"
LONGEST = 900
"""Seconds after which a session is cut off, so that no test waits for ever."""
# Tests are short: compiling Java code well takes longer than it saves.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_DEFAULTS = f"""
spark.driver.extraJavaOptions {QUICK_JAVA}
spark.executor.extraJavaOptions {QUICK_JAVA}
spark.executor.memory 1g
spark.shuffle.io.maxRetries 2
spark.shuffle.io.retryWait 1s
spark.ui.enabled false
spark.ui.showConsoleProgress false
"""


@dataclass(frozen=True)
class Standalone:
    """A cluster that runs: its address, and what programs that use it need."""

    address: str
    environment: dict[str, str]


@contextmanager
def local_cluster() -> Iterator[object]:
    """Yield a session on a master and two workers in one process, executors of their own."""
    with _home() as home, _session("local-cluster[2,1,1024]", _environment(home)) as spark:
        yield spark


@contextmanager
def local_session() -> Iterator[object]:
    """Yield a session without a cluster: threads of one process, which start soon."""
    with _home() as home, _session("local[2]", _environment(home)) as spark:
        yield spark


@contextmanager
def standalone() -> Iterator[Standalone]:
    """Yield a master with two workers, each a process of its own."""
    with _home() as home, ExitStack() as daemons:
        port = _free_port()
        address = f"spark://127.0.0.1:{port}"
        master = _start(daemons, home, "master.Master", "--host", "127.0.0.1", "--port", port)
        _wait_for(master, port)
        for number in range(2):
            _start(
                daemons,
                home,
                "worker.Worker",
                *("--host", "127.0.0.1", "--cores", 1, "--memory", "1g"),
                *("--work-dir", home / f"work-{number}", address),
            )
        yield Standalone(address, _environment(home))


@contextmanager
def session_on(cluster: Standalone) -> Iterator[object]:
    """Yield a session on a cluster that runs."""
    with _session(cluster.address, cluster.environment) as spark:
        yield spark


@contextmanager
def _session(master: str, environment: dict[str, str]) -> Iterator[object]:
    from pyspark.sql import SparkSession

    # The JVM that PySpark starts outlives a session, and with it its environment.
    with mock.patch.dict(os.environ, environment):
        spark = (
            SparkSession.builder.master(master)
            .appName("pegsynth tests")
            .config("spark.log.level", "FATAL")
            .getOrCreate()
        )
        gateway = spark.sparkContext._gateway
        guard = threading.Timer(LONGEST, gateway.proc.kill)
        guard.daemon = True
        guard.start()
        try:
            yield spark
        finally:
            _end(spark, gateway)
            guard.cancel()


def _end(spark: object, gateway: object) -> None:
    """End a session and its JVM, so that the next has an environment of its own."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):  # the JVM may be gone
        spark.stop()
    _end_java(gateway)


def _end_java(gateway: object) -> None:
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    _wait_or_kill(gateway.proc)
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def one_java(cluster: Standalone) -> Iterator[None]:
    """Let commands that are run in this process share a JVM, which takes long to start."""
    from pyspark import SparkContext

    with mock.patch.dict(os.environ, cluster.environment):
        try:
            yield
        finally:
            if SparkContext._gateway is not None:
                _end_java(SparkContext._gateway)


def _wait_or_kill(process: subprocess.Popen) -> None:
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)


@contextmanager
def _home() -> Iterator[Path]:
    """Yield a Spark home whose settings, logs and work lie in a temporary folder."""
    import pyspark

    require(JAVA)
    home = Path(tempfile.mkdtemp(prefix="pegs-spark-"))
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text(_DEFAULTS)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _environment(home: Path) -> dict[str, str]:
    return {
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "PYSPARK_PYTHON": sys.executable,
    }


def _start(daemons: ExitStack, home: Path, name: str, *arguments: object) -> subprocess.Popen:
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--webui-port", 0]
    with (home / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(part) for part in (*command, *arguments)],
            env={**os.environ, **_environment(home)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    daemons.callback(_wait_or_kill, process)
    daemons.callback(process.terminate)
    return process


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(master: subprocess.Popen, port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and master.poll() is None:
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
