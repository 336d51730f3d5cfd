"""The pages of the studio: what each shows. They call the pipeline and decide nothing."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.privacy import Ledger
from pegsynth.runtime import __version__
from pegsynth.studio import codebook_forms, jobs, spelled_commands
from pegsynth.studio.form_deeds import CHANGES, Deeds, text_of
from pegsynth.studio.guard import FIELD, REPORT_POLICY, Guard
from pegsynth.studio.project import CHOICES, COMPARISON, COUNTS, STEPS, Project

INTERNAL = {"report": "report.html", "sign-off": "sign-off.html"}
"""Pages of a release that stay in the house, by the names that the studio has for them."""


def result(folder: Path) -> dict[str, Any]:
    """Return what the page of results says of a finished release."""
    public, internal = folder / "public", folder / "internal"
    ledger = Ledger.from_json((public / "privacy.json").read_text(encoding="utf-8"))
    return {
        "name": folder.name,
        "promise": ledger.statement().split("\n\n")[0].split(" In plain words")[0],
        "kind": ledger.guarantee.kind,
        "files": [(file.name, file.stat().st_size) for file in sorted(public.iterdir())],
        "internal": [name for name, file in INTERNAL.items() if (internal / file).is_file()],
        "comparable": (internal / "metrics.json").is_file(),
    }


def maps(folder: Path) -> tuple[str, ...]:
    """Return the names of the drawn maps of risk and utility."""
    return tuple(file.stem for file in sorted(folder.glob("map-*.svg")))


def pack(folder: Path, target: Path) -> None:
    """Write what may be published of a release into one file, and nothing else."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((folder / "public").iterdir()):
            archive.write(file, file.name)


_TYPED = (
    *("label", "kind", "role", "categories", "edges", "lowest", "highest", "missing", "unknown"),
    *("parent", "top", "bottom", "round", "hierarchy", "private"),
)
_MAPS = COMPARISON.replace(".html", "-figures")

Deed = Callable[[Project, FormData], Awaitable[Response] | Response]


def application(folder: Path, guard: Guard) -> Starlette:
    """Return the application of a project."""
    studio, does = _Studio(folder, guard), Deeds(folder.absolute())
    deeds: dict[str, Deed] = {
        "table": does.choose_table,
        "allow": does.allow,
        "codebook": does.change_codebook,
        "count": does.count,
        "plan": does.choose_budget,
        "book": does.choose_book,
        "release": does.run_release,
        "compare": does.compare,
        "stop": does.stop,
    }
    routes = [
        Route("/", studio.home),
        *(Route(f"/{step}", studio.page(step)) for step in STEPS),
        Route("/codebook/{number:int}", studio.feature),
        Route("/job", studio.job),
        Route("/report/{name}", studio.internal("report")),
        Route("/sign-off/{name}", studio.internal("sign-off")),
        Route("/comparison", studio.comparison),
        Route("/comparison/{name}", studio.map),
        Route("/download/{name}", studio.download),
        *(Route(f"/{name}", studio.deed(deed), methods=["POST"]) for name, deed in deeds.items()),
        Mount("/static", StaticFiles(packages=[("pegsynth.studio", "static")])),
    ]
    return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)])


class _Studio:
    """Pages of one project; all they know is on disk, so that two tabs agree."""

    def __init__(self, folder: Path, guard: Guard) -> None:
        self._folder, self._guard = folder.absolute(), guard
        self._templates = Environment(
            loader=PackageLoader("pegsynth.studio"), autoescape=True, undefined=StrictUndefined
        )

    def _shown(self, step: str, project: Project, *, status: int = 200, **more: Any) -> Response:
        return self._rendered(step, step, project, status, {**_SHOWN[step](project), **more})

    def _rendered(
        self, template: str, step: str, project: Project, status: int, more: dict[str, Any]
    ) -> Response:
        told = {
            "step": step,
            "steps": STEPS,
            "project": project,
            "job": jobs.current(self._folder),
            "version": __version__,
            "form_token": self._guard.form_token,
            "problem": "",
            **more,
        }
        return HTMLResponse(self._templates.get_template(f"{template}.html").render(told), status)

    async def home(self, request: Request) -> Response:
        """Go to the step that comes next."""
        project = Project.open(self._folder)
        step = "table" if project.schema is None else "results" if project.releases else "codebook"
        return RedirectResponse(f"/{step}", 303)

    def page(self, step: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler that shows a step."""

        async def handler(request: Request) -> Response:
            try:
                return self._shown(step, Project.open(self._folder))
            except PegsynthError as error:
                return self._shown(step, Project(self._folder), status=400, problem=str(error))

        return handler

    def deed(self, do: Deed) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler of a form: it does something, or says why not."""

        async def handler(request: Request) -> Response:
            async with request.form(max_files=2, max_part_size=1 << 24) as form:
                if not self._guard.is_ours(form.get(FIELD)):
                    return PlainTextResponse("403: this form is not of the studio", 403)
                try:
                    answer = do(Project.open(self._folder), form)
                    return await answer if isinstance(answer, Awaitable) else answer
                except PegsynthError as error:
                    return self._refused(form, str(error))

        return handler

    def _refused(self, form: FormData, problem: str) -> Response:
        """Show the page that a form came from again, with what was typed and why not."""
        try:
            project = Project.open(self._folder)
        except PegsynthError:
            project = Project(self._folder)
        schema = project.schema
        if text_of(form, "what") == "feature" and schema is not None:
            names = [column.name for column in schema.columns]
            if text_of(form, "name") in names:
                number = names.index(text_of(form, "name"))
                return self._column(project, number, typed=form, problem=problem)
        step = text_of(form, "step")
        step = step if step in STEPS else "table"
        return self._shown(step, project, status=400, problem=problem)

    async def feature(self, request: Request) -> Response:
        """Show one column of the codebook."""
        project = Project.open(self._folder)
        number = int(request.path_params["number"])
        if project.schema is None or not 0 <= number < len(project.schema.columns):
            return RedirectResponse("/codebook", 303)
        return self._column(project, number)

    def _column(
        self, project: Project, number: int, *, typed: FormData | None = None, problem: str = ""
    ) -> Response:
        schema = project.schema
        if schema is None:
            raise ParameterError("there is no codebook yet; choose a table first")
        counts = codebook_forms.read_counts(self._folder / COUNTS, schema)
        counts = counts if project.may_see else None
        shown = codebook_forms.details(schema, number, counts, may_see=project.may_see)
        if typed is not None:
            shown |= {name: str(typed[name]) for name in _TYPED if name in typed}
        more = {"feature": shown, "number": number, "count": len(schema.columns)}
        status = 400 if problem else 200
        return self._rendered("feature", "codebook", project, status, {**more, "problem": problem})

    async def job(self, request: Request) -> Response:
        """Say how far the running command is."""
        found = jobs.current(self._folder)
        told = ("running", "outcome", "stage", "done", "total")
        return JSONResponse({name: getattr(found, name) for name in told})

    def internal(self, kind: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler that shows an internal page of a release."""

        async def handler(request: Request) -> Response:
            page = self._release(request) / "internal" / INTERNAL[kind]
            return self._house_page(page, f"404: this release has no {kind} page")

        return handler

    async def comparison(self, request: Request) -> Response:
        """Show releases side by side."""
        return self._house_page(self._folder / COMPARISON, "404: nothing was compared yet")

    def _house_page(self, page: Path, missing: str) -> Response:
        """Show a page that was made from rows to those who may see them."""
        if not page.is_file():
            return PlainTextResponse(missing, 404)
        if not Project.open(self._folder).may_see:
            return PlainTextResponse(
                "403: this page shows figures of the table. Say on the page of results that you "
                "may see them.",
                403,
            )
        return HTMLResponse(
            page.read_text(encoding="utf-8"), headers={"Content-Security-Policy": REPORT_POLICY}
        )

    async def map(self, request: Request) -> Response:
        """Send a map of risk and utility as a picture."""
        name = request.path_params["name"]
        known = maps(self._folder / _MAPS)
        if name not in known or not Project.open(self._folder).may_see:
            return PlainTextResponse("404: there is no such map", 404)
        return FileResponse(
            self._folder / _MAPS / f"{name}.svg",
            media_type="image/svg+xml",
            headers={"Content-Security-Policy": REPORT_POLICY},
        )

    async def download(self, request: Request) -> Response:
        """Send what may be published of a release as one file."""
        folder = self._release(request)
        if not folder.is_dir():
            return PlainTextResponse("404: there is no such release", 404)
        name = f"{folder.name}-public.zip"
        target = self._folder / jobs.FOLDER / name
        await asyncio.to_thread(pack, folder, target)
        return FileResponse(target, media_type="application/zip", filename=name)

    def _release(self, request: Request) -> Path:
        """Return the folder of a release that is there; no other path can be named."""
        wanted = request.path_params["name"]
        found = {path.name: path for path in Project.open(self._folder).releases}
        return found.get(wanted, self._folder / "none")


def _table_told(project: Project) -> dict[str, Any]:
    return {"spelled": spelled_commands.draft(project, private=not project.may_see)}


def _codebook_told(project: Project) -> dict[str, Any]:
    schema = project.schema
    noted = project.folder / CHANGES
    changes = noted.read_text(encoding="utf-8") if noted.is_file() else ""
    told: dict[str, Any] = {"book": None, "book_text": "", "spelled": None, "counting": None}
    if schema is None:
        there = project.schema_file.is_file()
        text = project.schema_file.read_text(encoding="utf-8", errors="replace") if there else ""
        return {**told, "book_text": text}
    counts = codebook_forms.read_counts(project.folder / COUNTS, schema)
    counts = counts if project.may_see else None
    return {
        "book": codebook_forms.overview(schema, counts, may_see=project.may_see),
        "book_text": project.schema_file.read_text(encoding="utf-8"),
        "spelled": spelled_commands.check(changes),
        "counting": spelled_commands.count(project) if project.data else None,
    }


def _plan_told(project: Project) -> dict[str, Any]:
    # Planning needs every method and its kernels; the first page should not wait for them.
    from pegsynth.studio import plan_view

    file = project.choices.get("book", "")
    try:
        chosen = plan_view.options_of(project)
    except PegsynthError:
        chosen = {}
    return {
        "plan": plan_view.view(project) if project.schema is not None else None,
        "fields": plan_view.fields_of(project),
        "chosen": {name: project.choices.get(name, "") for name in CHOICES},
        "spelled": spelled_commands.plan(project),
        "budget": plan_view.book_view(project.folder, file, chosen),
        "book_spelled": spelled_commands.book_show(file) if file else None,
    }


def _release_told(project: Project) -> dict[str, Any]:
    from pegsynth.studio import plan_view

    schema = project.schema
    return {
        "budget": plan_view.book_view(project.folder, project.choices.get("book", ""), {}),
        "ready": schema is not None and bool(project.data),
        "reviewed": schema is not None and schema.reviewed,
        "spelled": spelled_commands.release(project, project.next_release),
        "chosen": {name: project.choices.get(name, "") for name in CHOICES},
        # What is measured costs anew each time, so that nothing could be gone on from.
        "can_resume": schema is not None and not schema.unsettled,
        "resumes": "resume" in project.choices,
        "halfway": (project.folder / project.choices.get("resume", "-")).is_file(),
    }


def _results_told(project: Project) -> dict[str, Any]:
    results = [result(folder) for folder in project.releases]
    names = [each["name"] for each in results if each["comparable"]]
    return {
        "results": results,
        "names": names,
        "spelled": spelled_commands.compare(names),
        "compared": (project.folder / COMPARISON).is_file(),
        "maps": maps(project.folder / _MAPS),
    }


_SHOWN: dict[str, Callable[[Project], dict[str, Any]]] = {
    "table": _table_told,
    "codebook": _codebook_told,
    "plan": _plan_told,
    "release": _release_told,
    "results": _results_told,
}
"""What each step shows beside the project itself."""
