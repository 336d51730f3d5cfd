"""How a browser comes to the studio: by a token that works once and that no other user can read."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from running import in_process, studio, write_table

from browser import browser
from pegsynth.studio.guard import Guard

RECORDING = """#!{python}
import json, os, sys
from pathlib import Path
from urllib.parse import unquote, urlsplit
page = Path(unquote(urlsplit(sys.argv[1]).path))
told = {{
    "words": sys.argv,
    "environment": dict(os.environ),
    "page": page.read_text(),
    "file": str(page),
    "modes": [each.stat().st_mode & 0o777 for each in (page, page.parent)],
}}
Path({record!r} + ".part").write_text(json.dumps(told))
os.rename({record!r} + ".part", {record!r})
"""


def until(true, seconds=60):
    """Wait for something to become true, and return it."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


@pytest.fixture
def recording(tmp_path):
    """Return a command in the place of a browser, and where it writes what it was given."""
    record, command = tmp_path / "record.json", tmp_path / "browser"
    command.write_text(RECORDING.format(python=sys.executable, record=str(record)))
    command.chmod(0o700)
    return str(command), record


def opener():
    """Return a client that keeps its cookies as browsers do: by machine, not by port."""
    jar = http.cookiejar.CookieJar()
    handlers = (urllib.request.HTTPCookieProcessor(jar), urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers), jar


def status_of(client, address):
    try:
        return client.open(address, timeout=60).status
    except urllib.error.HTTPError as error:
        return error.code


def list_of_processes():
    """Return the command lines of all processes, which every user of a machine can read."""
    found = []
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            found.append(Path("/proc", process, "cmdline").read_bytes())
    return found


def test_the_browser_is_given_a_file_and_no_secret(tmp_path, recording):
    command, record = recording
    folder, elsewhere = write_table(tmp_path / "project"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = os.umask(0)
    try:
        with studio(folder, browser=command, TMPDIR=str(elsewhere)) as running:
            assert until(record.exists)
            told = json.loads(record.read_text())
            file = Path(told["file"])
            assert told["words"] == [command, file.as_uri()]
            assert told["modes"] == [0o600, 0o700]
            assert file.is_relative_to(folder)
            assert running.address in told["page"]
            assert running.token not in json.dumps(told["words"]) + json.dumps(told["environment"])
            secret = running.token.encode()
            assert not any(secret in each for each in list_of_processes())
            assert file.exists()
            client, jar = opener()
            assert status_of(client, running.address) == 200
            assert until(lambda: not file.exists())
            assert running.token not in [cookie.value for cookie in jar]
            assert status_of(client, f"{running.home}/table") == 200
            assert status_of(opener()[0], running.address) == 403
            running.process.terminate()
            running.process.wait(30)
            said = running.process.stderr.read()
    finally:
        os.umask(before)
    assert running.token not in said
    assert list((folder / ".studio").glob("open-*")) == []
    assert list(elsewhere.iterdir()) == []
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert not any(running.token.encode() in path.read_bytes() for path in left)


def test_the_search_of_processes_finds_a_secret(tmp_path, recording):
    """The twin: a token on a command line."""
    import subprocess

    with subprocess.Popen([sys.executable, "-c", "input()", "secret-1f8a"], stdin=-1) as process:
        try:
            assert until(lambda: any(b"secret-1f8a" in each for each in list_of_processes()))
        finally:
            process.kill()


def test_a_file_is_removed_when_the_studio_ends_unused(tmp_path, recording):
    command, record = recording
    folder = write_table(tmp_path / "project")
    with studio(folder, browser=command) as running:
        assert until(record.exists)
        assert len(list((folder / ".studio").glob("open-*/*"))) == 1
        running.process.terminate()
        running.process.wait(30)
        assert list((folder / ".studio").glob("open-*")) == []


def test_without_a_browser_nothing_is_opened(tmp_path, recording):
    command, record = recording
    with studio(write_table(tmp_path / "project"), BROWSER=command) as running:
        assert "within 5 minutes" in running.process.stderr.readline()
        assert status_of(opener()[0], running.address) == 200
    assert not record.exists()
    assert list((tmp_path / "project" / ".studio").glob("open-*")) == []


def test_a_token_becomes_a_cookie_once(tmp_path):
    with in_process(write_table(tmp_path)) as client:
        token = client.guard.token
        assert client.ask("POST", f"/?token={token}").status == 403
        assert client.ask("HEAD", f"/?token={token}").status == 403
        assert client.get(f"/?token={token}", Host="evil.example:80").status == 403
        assert client.get("/", Cookie=f"pegs-studio-{client.guard.port}={token}").status == 403
        first = client.get(f"/?token={token}")
        assert first.status == 200
        assert token not in first.text
        assert first.headers["referrer-policy"] == "no-referrer"
        assert first.headers["cache-control"] == "no-store"
        name, _, rest = first.headers["set-cookie"].partition("=")
        secret, *attributes = re.split("; ?", rest)
        assert name == f"pegs-studio-{client.guard.port}"
        assert {each.lower() for each in attributes} == {"httponly", "samesite=strict", "path=/"}
        assert secret != token
        for used in (token, secret, client.guard.form_token):
            assert client.get(f"/?token={used}").status == 403
        assert client.get("/plan", Cookie=f"{name}={client.guard.form_token}").status == 403
        assert client.get("/plan", Cookie=f"{name}={secret}").status == 200


def test_a_token_grows_old(tmp_path):
    guard = Guard(frozenset(), 0)
    assert guard.life == 300
    with in_process(write_table(tmp_path), life=0.0) as client:
        assert client.get(f"/?token={client.guard.token}").status == 403
        assert not client.guard.entered.is_set()


def test_no_secret_is_shown_where_a_guard_is(tmp_path):
    guard = Guard(frozenset(), 0)
    assert guard.token not in repr(guard)
    assert Guard(frozenset(), 0).token != guard.token
    assert Guard(frozenset(), 0).form_token != guard.form_token


def test_two_studios_on_one_machine_keep_apart(tmp_path):
    """Cookies know no ports: one name for both would end the first when the second is opened."""
    client, jar = opener()
    with in_process(write_table(tmp_path / "a")) as a, in_process(write_table(tmp_path / "b")) as b:
        for each in (a, b):
            assert status_of(client, f"http://{each.host}/?token={each.guard.token}") == 200
        assert len({cookie.name for cookie in jar}) == len({c.value for c in jar}) == 2
        for each in (a, b, a):
            assert status_of(client, f"http://{each.host}/table") == 200
            assert status_of(client, f"http://{each.host}/?token={each.guard.token}") == 200
        names, values = ([getattr(cookie, of) for cookie in jar] for of in ("name", "value"))
        swapped = "; ".join(map("=".join, zip(names, reversed(values), strict=True)))
        assert a.get("/table", Cookie=swapped).status == 403


@pytest.mark.slow(seconds=10)
def test_a_real_browser_comes_by_the_file(tmp_path, recording):
    """From a file to the first page, with no token in the address, the history or a referrer."""
    command, record = recording
    with (
        studio(write_table(tmp_path / "project"), browser=command) as running,
        browser() as started,
    ):
        assert until(record.exists)
        context = started.new_context()
        page, requests = context.new_page(), []
        page.on("request", lambda request: requests.append(request))
        page.goto(json.loads(record.read_text())["words"][1])
        page.wait_for_url(f"{running.home}/table")
        assert page.locator("h1").count() == 1
        sent = [request.all_headers() for request in requests]
        assert not any(running.token in each.get("referer", "") for each in sent)
        assert sum(running.token in request.url for request in requests) == 1
        assert page.evaluate("document.cookie") == ""
        assert page.evaluate("document.referrer") == ""
        assert page.evaluate("history.length") <= 2
        cookies = context.cookies()
        assert [each["name"] for each in cookies] == [
            f"pegs-studio-{running.home.rpartition(':')[2]}"
        ]
        assert cookies[0]["httpOnly"]
        assert cookies[0]["sameSite"] == "Strict"
        page.reload()
        assert page.locator("h1").count() == 1
        page.go_back()
        assert "token" not in page.url
        page.goto(running.address)
        page.wait_for_url(f"{running.home}/table")
        other = started.new_context().new_page()
        assert other.goto(running.address).status == 403
        assert "start it again" in other.text_content("body")
