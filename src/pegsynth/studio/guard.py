"""Who may talk to the studio: the first browser that opens its address, from a page of the studio.

The address holds a token that works once and for a few minutes. The browser that brings it gets
another secret in a cookie; whoever brings neither gets 403 and nothing else. Other pages in the
same browser cannot use the cookie: it is sent to pages of the studio only, what changes something
needs a form of ours, and the name under which the server was reached must be its own, so that no
other name can be pointed at it.
"""

from __future__ import annotations

import hmac
import html
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

LIFE = 300
"""Seconds in which the address must be opened."""
FIELD = "form_token"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Reports hold figures and styles of their own, and no script."""
# Under "no-referrer" a browser would not say where a form of ours comes from.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_NOT_ENTERED = (
    "403: the address of the studio works once, in the first browser that opens it, and within "
    f"{LIFE // 60} minutes. For a new address end pegs studio (Ctrl-C) and start it again; a "
    "release that runs goes on."
)

Handler = Callable[[Request], Awaitable[Response]]


def _new_secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Guard:
    """What every request must bring.

    Parameters
    ----------
    hosts
        Names and ports under which the server may be reached.
    port
        Where it listens. Browsers send the cookies of one machine to all its ports, so that the
        name of the cookie must tell two studios apart.
    life
        Seconds in which the token must be used.
    token
        What the address of this run holds, until it was used.
    entered
        Set once it was.
    """

    hosts: frozenset[str]
    port: int
    life: float = LIFE
    token: str = field(default_factory=_new_secret, repr=False)
    entered: threading.Event = field(default_factory=threading.Event, repr=False)
    _secret: str = field(default_factory=_new_secret, init=False, repr=False)
    _began: float = field(default_factory=time.monotonic, init=False, repr=False)

    async def __call__(self, request: Request, handler: Handler) -> Response:
        """Refuse a request, or answer it under a strict policy."""
        response = self._refused(request)
        if response is None:
            response = await handler(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refused(self, request: Request) -> Response | None:
        if request.headers.get("host", "") not in self.hosts:
            return PlainTextResponse("403: this address is not the studio's own", 403)
        if not _same(request.cookies.get(self._cookie, ""), self._secret):
            return self._enter(request)
        if request.method != "GET" and not self._from_here(request):
            return PlainTextResponse("403: this form is not of the studio", 403)
        return None

    def _enter(self, request: Request) -> Response:
        """Give the browser its secret for the token; the token is of no use from then on."""
        told = request.query_params.get("token", "")
        late = time.monotonic() - self._began > self.life or self.entered.is_set()
        if request.method != "GET" or late or not _same(told, self.token):
            return PlainTextResponse(_NOT_ENTERED, 403)
        self.entered.set()
        # A browser that comes from a file sends no strict cookie along a redirection by status.
        page = HTMLResponse(passing_on("/"), headers={"Referrer-Policy": "no-referrer"})
        page.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict", path="/")
        return page

    def _from_here(self, request: Request) -> bool:
        origin = request.headers.get("origin")
        return origin is not None and urlsplit(origin).netloc in self.hosts

    @property
    def _cookie(self) -> str:
        return f"pegs-studio-{self.port}"

    def is_ours(self, told: object) -> bool:
        """Whether a form was made by a page of this run."""
        return isinstance(told, str) and _same(told, self.form_token)

    @property
    def form_token(self) -> str:
        """A secret for forms; it does not tell that of the cookie."""
        return hmac.new(self._secret.encode(), b"form", "sha256").hexdigest()


def passing_on(address: str) -> str:
    """Return a page that leads to an address and does not tell it where it came from."""
    to = html.escape(address)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>pegs studio</title>'
        '<link rel="icon" href="data:,">'
        f'<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" '
        f'content="0; url={to}"><p><a href="{to}">Go on to the studio</a></p></html>\n'
    )


def _same(told: str, secret: str) -> bool:
    return hmac.compare_digest(told.encode(), secret.encode())
