"""The server of the studio: one process, this machine only, one project folder."""

from __future__ import annotations

import importlib
import ipaddress
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pegsynth.errors import ParameterError

LOOPBACK = "127.0.0.1"
_FIRST_PAGE = 0.5
"""Seconds in which the first page is asked for and shown."""


def serve(
    folder: Path,
    *,
    port: int = 0,
    host: str = LOOPBACK,
    anyone: bool = False,
    browser: bool = True,
    say: Callable[[str], None],
) -> None:
    """Serve the pages of a project until the process is stopped.

    Parameters
    ----------
    folder
        The project; made if it is not there.
    port
        0 takes one that is free.
    host
        Where to listen; anything but this machine needs `anyone`.
    anyone
        The user's word that whoever reaches the address and has the token may see the table.
    browser
        Whether to open the page.
    say
        Takes lines for the user.

    Raises
    ------
    ParameterError
        The address is not this machine's own, or is taken; a package is missing.
    """
    _check_host(host, anyone=anyone)
    try:
        import uvicorn

        from pegsynth.studio.pages import application
    except ImportError as error:
        raise ParameterError(
            f"the studio needs the package {error.name!r}; install pegsynth[studio]"
        ) from None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listening = socket.create_server((host, port))
    except OSError as error:
        where = error.filename or f"{host}:{port}"
        raise ParameterError(f"{where}: {error.strerror}; choose another") from None
    token, taken = secrets.token_urlsafe(24), listening.getsockname()[1]
    address = f"http://{host}:{taken}/?token={token}"
    names = {host, "localhost"} if host == LOOPBACK else {host}
    app = application(folder, token, frozenset(f"{name}:{taken}" for name in names))
    say(f"The studio of {folder} is at {address}")
    say("Whoever has this address can use it. Ctrl-C ends it; a release that runs goes on.")
    if browser:
        webbrowser.open(address)
    threading.Thread(target=_look_ahead, daemon=True).start()
    settings: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False}
    uvicorn.Server(uvicorn.Config(app, **settings)).run(sockets=[listening])


def _look_ahead() -> None:
    """Import what the page of the plan needs while the user looks at the first one."""
    time.sleep(_FIRST_PAGE)
    importlib.import_module("pegsynth.studio.plan_view")
    importlib.import_module("pegsynth.studio.book_view")


def _check_host(host: str, *, anyone: bool) -> None:
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ParameterError(f"--host is an address such as {LOOPBACK}, not {host!r}") from None
    if not local and not anyone:
        raise ParameterError(
            f"--host {host} would let other machines see a confidential table; the studio listens "
            "on this machine only. If you are sure, add --anyone-on-the-network"
        )
