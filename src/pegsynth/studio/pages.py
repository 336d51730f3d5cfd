"""The pages of the studio: what each shows and does. They call the pipeline and decide nothing."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.studio import codebook_forms, jobs, plan_view, spelled_commands
from pegsynth.studio.guard import FIELD, REPORT_POLICY, Guard
from pegsynth.studio.project import CHOICES, Project
from pegsynth.version import __version__

STEPS = {
    "table": "Table",
    "codebook": "Codebook",
    "plan": "Plan",
    "release": "Release",
    "results": "Results",
}
_MOST_UPLOAD = 4 << 30
_CHUNK = 1 << 20

Deed = Callable[[Project, FormData], Awaitable[Response] | Response]


def application(folder: Path, token: str, hosts: frozenset[str]) -> Starlette:
    """Return the application of a project."""
    guard = Guard(token, hosts)
    studio = _Studio(folder, guard)
    deeds: dict[str, Deed] = {
        "table": studio.choose_table,
        "codebook": studio.change_codebook,
        "plan": studio.choose_budget,
        "release": studio.run_release,
        "stop": studio.stop,
    }
    routes = [
        Route("/", studio.home),
        *(Route(f"/{step}", studio.page(step)) for step in STEPS),
        Route("/codebook/{number:int}", studio.feature),
        Route("/job", studio.job),
        Route("/report/{name}", studio.report),
        Route("/download/{name}", studio.download),
        *(Route(f"/{name}", studio.deed(deed), methods=["POST"]) for name, deed in deeds.items()),
        Mount("/static", StaticFiles(packages=[("pegsynth.studio", "static")])),
    ]
    return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)])


class _Studio:
    """Handlers of one project; all they know is on disk, so that two tabs agree."""

    def __init__(self, folder: Path, guard: Guard) -> None:
        self._folder, self._guard = folder.absolute(), guard
        self._templates = Environment(
            loader=PackageLoader("pegsynth.studio"), autoescape=True, undefined=StrictUndefined
        )

    def _shown(self, step: str, project: Project, *, status: int = 200, **more: Any) -> Response:
        told = {
            "step": step,
            "steps": STEPS,
            "project": project,
            "job": jobs.current(self._folder),
            "version": __version__,
            "form_token": self._guard.form_token,
            "problem": "",
            **_told(step, project),
            **more,
        }
        return HTMLResponse(self._templates.get_template(f"{step}.html").render(told), status)

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
            async with request.form(max_files=1, max_part_size=1 << 24) as form:
                if not self._guard.is_ours(form.get(FIELD)):
                    return PlainTextResponse("403: this form is not of the studio", 403)
                project = Project.open(self._folder)
                try:
                    answer = do(project, form)
                    return await answer if isinstance(answer, Awaitable) else answer
                except PegsynthError as error:
                    step = str(form.get("step", "table"))
                    step = step if step in STEPS else "table"
                    return self._shown(step, project, status=400, problem=str(error))

        return handler

    async def choose_table(self, project: Project, form: FormData) -> Response:
        """Take a table or a codebook, and draft from it."""
        how = _text(form, "how")
        if how == "codebook":
            file = _text(form, "codebook")
            if not file:
                raise ParameterError("name the file of the codebook")
            jobs.start(self._folder, spelled_commands.codebook(file).words)
            return RedirectResponse("/table", 303)
        sent = form.get("file")
        data = _text(form, "data")
        if isinstance(sent, UploadFile) and sent.filename:
            data = await self._kept(sent)
        if not data:
            raise ParameterError("name a table: a file, a folder, an address or a database")
        may_see = _text(form, "may_see") == "yes"
        if how == "rows" and not may_see:
            raise ParameterError(
                "a draft from rows shows values of the table; say that you may see them, or draft "
                "from names and types alone"
            )
        project = project.changed(data=data, table=_text(form, "table"), may_see=may_see)
        words = spelled_commands.draft(project, private=how != "rows").words
        jobs.start(self._folder, (*words, "--force") if _text(form, "replace") else words)
        return RedirectResponse("/table", 303)

    async def _kept(self, sent: UploadFile) -> str:
        """Copy a file that the browser hands over into the project's folder."""
        name = Path(sent.filename or "table").name
        target = self._folder / f"table-{name}"
        written = 0
        with target.open("wb") as file:
            target.chmod(0o600)
            while part := await sent.read(_CHUNK):
                written += len(part)
                if written > _MOST_UPLOAD:
                    raise ParameterError("the file is larger than 4 GiB; name its path instead")
                await asyncio.to_thread(file.write, part)
        return target.name

    def change_codebook(self, project: Project, form: FormData) -> Response:
        """Apply one form of the codebook, and save what came of it."""
        told = {name: _texts(form, name) for name in form}
        back = codebook_forms.apply(project.schema_file, told)
        return RedirectResponse(back, 303)

    async def feature(self, request: Request) -> Response:
        """Show one feature of the codebook."""
        project = Project.open(self._folder)
        schema = project.schema
        number = int(request.path_params["number"])
        if schema is None or not 0 <= number < len(schema.columns):
            return RedirectResponse("/codebook", 303)
        shown = codebook_forms.details(project.schema_file, schema, number)
        return HTMLResponse(
            self._templates.get_template("feature.html").render(
                step="codebook",
                steps=STEPS,
                project=project,
                version=__version__,
                form_token=self._guard.form_token,
                problem="",
                job=jobs.current(self._folder),
                feature=shown,
                number=number,
                count=len(schema.columns),
            )
        )

    def choose_budget(self, project: Project, form: FormData) -> Response:
        """Take the choices of the plan, which must make a plan."""
        choices = {name: _text(form, name) for name in CHOICES if _text(form, name)}
        changed = project.changed(choices=choices)
        plan_view.forecast_of(changed)
        return RedirectResponse("/plan", 303)

    def run_release(self, project: Project, form: FormData) -> Response:
        """Start a release."""
        if project.schema is None or not project.data:
            raise ParameterError("choose a table and its codebook first")
        jobs.start(self._folder, spelled_commands.release(project, project.next_release).words)
        return RedirectResponse("/release", 303)

    def stop(self, project: Project, form: FormData) -> Response:
        """Stop the command that runs."""
        jobs.stop(self._folder)
        return RedirectResponse("/release", 303)

    async def job(self, request: Request) -> Response:
        """Say how far the running command is."""
        found = jobs.current(self._folder)
        return JSONResponse(
            {
                "running": found.running,
                "outcome": found.outcome,
                "stage": found.stage,
                "done": found.done,
                "total": found.total,
            }
        )

    async def report(self, request: Request) -> Response:
        """Show the internal report of a release."""
        page = self._release(request) / "internal" / "report.html"
        if not page.is_file():
            return PlainTextResponse("404: this release has no internal report", 404)
        return HTMLResponse(
            page.read_text(encoding="utf-8"), headers={"Content-Security-Policy": REPORT_POLICY}
        )

    async def download(self, request: Request) -> Response:
        """Send what may be published of a release as one file."""
        folder = self._release(request)
        if not folder.is_dir():
            return PlainTextResponse("404: there is no such release", 404)
        packed = await asyncio.to_thread(_packed, folder / "public")
        return Response(
            packed,
            media_type="application/zip",
            headers={"Content-Disposition": f'attachment; filename="{folder.name}-public.zip"'},
        )

    def _release(self, request: Request) -> Path:
        """Return the folder of a release that is there; no other path can be named."""
        wanted = request.path_params["name"]
        found = {path.name: path for path in Project.open(self._folder).releases}
        return found.get(wanted, self._folder / "none")


def _told(step: str, project: Project) -> dict[str, Any]:
    """Return what a step shows beside the project itself."""
    schema = project.schema
    if step == "codebook":
        shown = None if schema is None else codebook_forms.overview(schema)
        text = project.schema_file.read_text(encoding="utf-8") if shown else ""
        return {"book": shown, "book_text": text}
    if step == "plan":
        ready = schema is not None
        return {
            "plan": plan_view.view(project) if ready else None,
            "chosen": {name: project.choices.get(name, "") for name in CHOICES},
            "spelled": spelled_commands.plan(project),
        }
    if step == "release":
        return {
            "ready": schema is not None and bool(project.data),
            "reviewed": schema is not None and schema.reviewed,
            "spelled": spelled_commands.release(project, project.next_release),
        }
    if step == "results":
        return {"results": [plan_view.result(folder) for folder in project.releases]}
    return {"spelled": spelled_commands.draft(project, private=not project.may_see)}


def _packed(folder: Path) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    return held.getvalue()


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def _texts(form: FormData, name: str) -> list[str]:
    return [value for value in form.getlist(name) if isinstance(value, str)]
