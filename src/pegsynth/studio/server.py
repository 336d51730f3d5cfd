"""The server of the studio: one process, this machine only, one project folder."""

from __future__ import annotations

import importlib
import ipaddress
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pegsynth.errors import ParameterError
from pegsynth.tables.atomic import atomic_text

if TYPE_CHECKING:
    from pegsynth.studio.guard import Guard

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

        from pegsynth.studio import jobs
        from pegsynth.studio.guard import LIFE, Guard
        from pegsynth.studio.pages import application
    except ImportError as error:
        raise ParameterError(
            f"the studio needs the package {error.name!r}; install pegsynth[studio]"
        ) from None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = jobs.own_folder(folder)
        listening = socket.create_server((host, port))
    except OSError as error:
        where = error.filename or f"{host}:{port}"
        raise ParameterError(f"{where}: {error.strerror}; choose another") from None
    taken = listening.getsockname()[1]
    names = {host, "localhost"} if host == LOOPBACK else {host}
    guard = Guard(frozenset(f"{name}:{taken}" for name in names), taken)
    address = f"http://{host}:{taken}/?token={guard.token}"
    say(f"The studio of {folder} is at {address}")
    say(
        f"This address works once, in the first browser that opens it within {LIFE // 60} minutes. "
        "Ctrl-C ends the studio; a release that runs goes on."
    )
    threading.Thread(target=_look_ahead, daemon=True).start()
    settings: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False}
    server = uvicorn.Server(uvicorn.Config(application(folder, guard), **settings))
    with ExitStack() as serving:
        if browser:
            serving.enter_context(_opened(address, guard, private))
        server.run(sockets=[listening])


@contextmanager
def _opened(address: str, guard: Guard, private: Path) -> Iterator[None]:
    """Open an address in the user's browser, by way of a file that its owner alone can read.

    Every user of the machine can read the command line of the browser. The file is removed once the
    token in it was used or is too old, at the latest in the end.
    """
    from pegsynth.studio.guard import passing_on

    with TemporaryDirectory(dir=private, prefix="open-") as place:
        page = Path(place).absolute() / "studio.html"
        atomic_text(page, passing_on(address), mode=0o600)

        def show() -> None:
            webbrowser.open(page.as_uri())
            guard.entered.wait(guard.life)
            page.unlink(missing_ok=True)

        # A browser in a terminal ends no sooner than its user does.
        threading.Thread(target=show, daemon=True).start()
        yield


def _look_ahead() -> None:
    """Import what the page of the plan needs while the user looks at the first one."""
    time.sleep(_FIRST_PAGE)
    importlib.import_module("pegsynth.studio.plan_view")


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
