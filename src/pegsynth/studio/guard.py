"""Who may talk to the studio: the browser that was given the token, from a page of the studio.

A request without the token gets 403 and nothing else. Other pages in the same browser cannot use
it: the cookie is sent to pages of the studio only, what changes something needs a form of ours, and
the name under which the server was reached must be its own, so that no other name can be pointed
at it.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

COOKIE = "pegs-studio"
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

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Guard:
    """What every request must bring.

    Parameters
    ----------
    token
        The secret of this run, in the address that the command prints.
    hosts
        Names and ports under which the server may be reached.
    """

    token: str
    hosts: frozenset[str]

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
        if self._holds(request.query_params.get("token", "")) and request.method == "GET":
            # The secret leaves the address bar, and with it the history, at once.
            entered = RedirectResponse(request.url.path, 303)
            entered.set_cookie(COOKIE, self.token, httponly=True, samesite="strict", path="/")
            return entered
        if not self._holds(request.cookies.get(COOKIE, "")):
            return PlainTextResponse("403: open the address that pegs studio printed", 403)
        if request.method != "GET" and not self._from_here(request):
            return PlainTextResponse("403: this form is not of the studio", 403)
        return None

    def _from_here(self, request: Request) -> bool:
        origin = request.headers.get("origin")
        return origin is not None and urlsplit(origin).netloc in self.hosts

    def _holds(self, told: str) -> bool:
        return hmac.compare_digest(told.encode(), self.token.encode())

    def is_ours(self, told: object) -> bool:
        """Whether a form was made by a page of this run."""
        return isinstance(told, str) and hmac.compare_digest(
            told.encode(), self.form_token.encode()
        )

    @property
    def form_token(self) -> str:
        """A secret for forms; it does not tell the token itself."""
        return hmac.new(self.token.encode(), b"form", "sha256").hexdigest()
