"""A PostgreSQL server of the tests' own: Debian's, on a socket in a temporary folder.

It asks for a password, which clients find in PGPASSWORD, and runs without root's rights.
"""

from __future__ import annotations

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as driver

from system import require

PASSWORD = "a-password-of-the-tests"


@dataclass(frozen=True)
class Server:
    """A running server."""

    uri: str

    def run(self, *statements: str) -> list[tuple]:
        """Run statements in one transaction; return the rows of the last."""
        rows: list[tuple] = []
        with driver.connect(self.uri) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            connection.commit()
        return rows

    def fill(self, table: str, frame, *, schema: str | None = None) -> None:
        """Make a table of a frame."""
        with driver.connect(self.uri) as connection, connection.cursor() as cursor:
            place = {} if schema is None else {"db_schema_name": schema}
            cursor.adbc_ingest(table, frame.to_arrow(), "create", **place)
            connection.commit()

    def tables(self) -> set[str]:
        """Names of all tables and views that tests made."""
        rows = self.run(
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'v', 'm') AND relnamespace "
            "NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, "
            "'pg_toast'::regnamespace)"
        )
        return {name for (name,) in rows}

    def cut(self, *, seconds: float = 120.0) -> bool:
        """Wait for another connection to send rows, and end it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                "query LIKE 'COPY (SELECT%' AND state = 'active' AND pid <> pg_backend_pid()"
            )
            if found[0][0]:
                return True
            time.sleep(0.05)
        return False


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server and stop it at the end."""
    require("postgresql")
    (programs, *_) = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    # Sockets have short names, so this is not pytest's own folder.
    folder = Path(tempfile.mkdtemp(prefix="pegs-pg-"))
    who = {"user": "postgres", "group": "postgres", "extra_groups": ()} if not os.getuid() else {}
    options = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **who}
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if who:
        shutil.chown(folder, "postgres", "postgres")
        shutil.chown(secret, "postgres", "postgres")
    make = ("-D", "data", "-U", "postgres", "--no-sync", "-A", "scram-sha-256", "--encoding=UTF8")
    subprocess.run(
        [f"{programs}/initdb", *make, "--locale=C", f"--pwfile={secret}"], check=True, **options
    )
    settings = ("listen_addresses=", "fsync=off", f"unix_socket_directories={folder}")
    flags = [part for each in settings for part in ("-c", each)]
    process = subprocess.Popen([f"{programs}/postgres", "-D", "data", *flags], **options)
    before = os.environ.get("PGPASSWORD")
    os.environ["PGPASSWORD"] = PASSWORD
    try:
        uri = f"postgresql://postgres@/postgres?host={folder}"
        _wait(uri)
        yield Server(uri)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)
        if before is None:
            del os.environ["PGPASSWORD"]
        else:
            os.environ["PGPASSWORD"] = before


def _wait(uri: str) -> None:
    for _ in range(2400):
        try:
            driver.connect(uri).close()
            return
        except adbc_driver_manager.Error:
            time.sleep(0.05)
    raise TimeoutError("the server does not answer")
