"""A studio that runs, a client that fills in its forms, and a small table for it."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

from pegsynth.studio.guard import Guard

ROWS = 400


def write_table(folder: Path, columns: int = 3) -> Path:
    """Write a table that has no secret; tests look for the word `marker`."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"sex": ["f", "m"] * (ROWS // 2), "ward": ["marker", "b", "c", "b"] * (ROWS // 4)}
    data |= {f"q{n}": ["yes", "no", "no", "yes"] * (ROWS // 4) for n in range(columns - 2)}
    pl.DataFrame(data).write_csv(folder / "stays.csv")
    return folder


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    text: str
    headers: http.client.HTTPMessage
    content: bytes


@dataclass
class Client:
    """Talks to a server in this process; keeps its cookie and follows redirections by hand."""

    host: str
    guard: Guard
    cookie: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=120)
        try:
            sent = {"Cookie": self.cookie, **self.extra, **(headers or {})}
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        text = content.decode("utf-8", "replace")
        return Answer(response.status, text, response.headers, content)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def enter(self) -> Client:
        cookie = self.get(f"/?token={self.guard.token}").headers["set-cookie"]
        self.cookie = cookie.partition(";")[0]
        return self

    @property
    def form_token(self) -> str:
        return re.search(
            r'name="form_token" value="(\w+)"', self.get("/plan").text + self.get("/table").text
        )[1]

    def send(self, path: str, **fields: str | Sequence[str]) -> Answer:
        """Send a form as a page of the studio does, and follow where it leads."""
        told = {"form_token": self.form_token, "step": path.strip("/"), **fields}
        body = urlencode(told, doseq=True).encode()
        kind = "application/x-www-form-urlencoded"
        headers = {"Origin": f"http://{self.host}", "Content-Type": kind}
        answer = self.ask("POST", path, body, headers)
        if answer.status != 303:
            return answer
        return self.get(answer.headers["location"].partition("#")[0])

    def hand_over(self, name: str, content: bytes, **fields: str) -> Answer:
        """Send a form with a file."""
        told = {"form_token": self.form_token, **fields}
        parts = [
            f'--edge\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in told.items()
        ]
        opening = (
            f'--edge\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        )
        body = b"".join([*parts, opening.encode(), content, b"\r\n--edge--\r\n"])
        kind = "multipart/form-data; boundary=edge"
        headers = {"Origin": f"http://{self.host}", "Content-Type": kind}
        return self.ask("POST", "/table", body, headers)


@contextmanager
def in_process(folder: Path, **guarded: float) -> Iterator[Client]:
    """Serve a project from a thread of this process."""
    import uvicorn

    from pegsynth.studio.pages import application

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        host = f"127.0.0.1:{port}"
        guard = Guard(frozenset({host}), port, **guarded)
        app = application(folder, guard)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Client(host, guard)
        finally:
            server.should_exit = True
            thread.join(30)


@dataclass(frozen=True)
class Running:
    """A server as users start it, its project and the address that it printed.

    `cookies` are those of the browser that has opened the address; nobody else can any more.
    """

    process: subprocess.Popen[str]
    folder: Path
    address: str
    cookies: list[Any] = field(default_factory=list)

    @property
    def home(self) -> str:
        return self.address.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]


@contextmanager
def studio(folder: Path, *, browser: str | None = None, **surroundings: str) -> Iterator[Running]:
    """Start ``pegs studio``, with a command that opens addresses or none; stop it at the end."""
    words = ["studio", str(folder), *(() if browser else ("--no-browser",))]
    process = subprocess.Popen(
        [sys.executable, "-m", "pegsynth.cli.main", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": browser or "false", **surroundings},
    )
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield Running(process, folder, found[0])
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()
