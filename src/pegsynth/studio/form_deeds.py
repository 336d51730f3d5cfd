"""What the forms of the studio do: each keeps a choice, or starts the command that it shows."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import FormData, UploadFile
from starlette.responses import RedirectResponse, Response

from pegsynth.errors import ParameterError
from pegsynth.studio import codebook_changes, jobs, spelled_commands
from pegsynth.studio.project import PLANNED, STEPS, Project
from pegsynth.tables.atomic import atomic_text

CHANGES = ".studio/changes.py"
CHECKPOINT = "checkpoint"
_MOST_UPLOAD = 4 << 30
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Deeds:
    """The forms of one project."""

    folder: Path

    async def choose_table(self, project: Project, form: FormData) -> Response:
        """Take a table or a codebook, and draft from it."""
        how, replace = text_of(form, "how"), bool(text_of(form, "replace"))
        may_see = text_of(form, "may_see") == "yes"
        data = await self._handed_over(form, "file", "table") or text_of(form, "data")
        named = {"data": data, "table": text_of(form, "table"), "may_see": may_see}
        if how == "codebook":
            file = await self._handed_over(form, "codebook_file", "codebook")
            file = file or text_of(form, "codebook")
            if not file:
                raise ParameterError("name the file of the codebook, or hand it over")
            project.changed(**named)
            return self._draft(spelled_commands.codebook(file, replace=replace).words)
        if not data:
            raise ParameterError("name a table: a file, a folder, an address or a database")
        if how == "rows" and not may_see:
            raise ParameterError(
                "a draft from rows shows values of the table; say that you may see them, or draft "
                "from names and types alone"
            )
        project = project.changed(**named)
        words = spelled_commands.draft(project, private=how != "rows", replace=replace).words
        return self._draft(words)

    def _draft(self, words: tuple[str, ...]) -> Response:
        jobs.start(self.folder, words)
        (self.folder / CHANGES).unlink(missing_ok=True)
        return RedirectResponse("/table", 303)

    async def _handed_over(self, form: FormData, field: str, prefix: str) -> str:
        """Copy a file that the browser hands over into the project's folder, whole or not."""
        sent = form.get(field)
        if not isinstance(sent, UploadFile) or not sent.filename:
            return ""
        target = self.folder / f"{prefix}-{Path(sent.filename).name}"
        part, written = target.with_name(f".{target.name}.part"), 0
        try:
            with os.fdopen(
                os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb"
            ) as file:
                while chunk := await sent.read(_CHUNK):
                    written += len(chunk)
                    if written > _MOST_UPLOAD:
                        raise ParameterError("the file is larger than 4 GiB; name its path instead")
                    await asyncio.to_thread(file.write, chunk)
            part.replace(target)
        except OSError as error:
            raise ParameterError(
                f"{target.name}: {error.strerror}; name its path instead"
            ) from None
        finally:
            part.unlink(missing_ok=True)
        return target.name

    def allow(self, project: Project, form: FormData) -> Response:
        """Take the user's word that they may see what stands in the rows."""
        if text_of(form, "may_see") != "yes":
            raise ParameterError("tick the box to say that you may see values of the table")
        project.changed(may_see=True)
        step = text_of(form, "step")
        return RedirectResponse(f"/{step if step in STEPS else 'table'}", 303)

    def change_codebook(self, project: Project, form: FormData) -> Response:
        """Apply one form of the codebook, save what came of it, and note it as Python code."""
        told = {
            name: [value for value in form.getlist(name) if isinstance(value, str)] for name in form
        }
        back, code = codebook_changes.apply(project.schema_file, told)
        if code:
            noted = self.folder / CHANGES
            earlier = noted.read_text(encoding="utf-8") if noted.is_file() else ""
            noted.parent.mkdir(mode=0o700, exist_ok=True)
            atomic_text(noted, earlier + ("\n" if earlier else "") + code, mode=0o600)
        return RedirectResponse(back, 303)

    def count(self, project: Project, form: FormData) -> Response:
        """Count rows by the codebook; only for those who may see them."""
        if not project.may_see:
            raise ParameterError("counts are figures of the table; say first that you may see them")
        if project.schema is None or not project.data:
            raise ParameterError("choose a table and its codebook first")
        jobs.start(self.folder, spelled_commands.count(project).words)
        return RedirectResponse("/codebook", 303)

    def choose_budget(self, project: Project, form: FormData) -> Response:
        """Take the choices of the plan, which must make a plan."""
        from pegsynth.studio import plan_view

        kept = {name: text for name, text in project.choices.items() if name not in PLANNED}
        typed = {name: text_of(form, name) for name in PLANNED if text_of(form, name)}
        plan_view.forecast_of(project.changed(choices=kept | typed))
        return RedirectResponse("/plan", 303)

    def choose_book(self, project: Project, form: FormData) -> Response:
        """Name a budget book, make one, or do without."""
        file, do = text_of(form, "book"), text_of(form, "do")
        choices = {name: text for name, text in project.choices.items() if name != "book"}
        if do == "without":
            project.changed(choices=choices)
            return RedirectResponse("/plan#book", 303)
        if not file:
            raise ParameterError("name the file of the budget book, such as stays.book")
        if do == "create":
            self._make_book(project, form, file)
        elif not (self.folder / file).is_file():
            raise ParameterError(f"{file}: there is no such book; make it, or correct the name")
        project.changed(choices={**choices, "book": file})
        return RedirectResponse("/plan#book", 303)

    def _make_book(self, project: Project, form: FormData, file: str) -> None:
        from pegsynth.privacy.conversion import check_delta
        from pegsynth.storage.book.book_file import create_book
        from pegsynth.storage.book.book_policy import BookPolicy

        schema = project.schema
        delta = _number(form, "book_delta")
        policy = BookPolicy(
            epsilon=_number(form, "book_epsilon"),
            epsilon_per_year=_number(form, "book_year"),
            delta=0.0 if not delta else check_delta(delta),
            unit=(schema.unit or "") if schema is not None else "",
            private_categories=bool(delta)
            and schema is not None
            and any(each.private_categories for each in schema.features),
        )
        create_book(self.folder / file, policy, table=Path(project.data).stem)

    def run_release(self, project: Project, form: FormData) -> Response:
        """Start a release."""
        if project.schema is None or not project.data:
            raise ParameterError("choose a table and its codebook first")
        choices = {name: text for name, text in project.choices.items() if name != "resume"}
        if text_of(form, "resume"):
            choices["resume"] = CHECKPOINT
        project = project.changed(choices=choices)
        jobs.start(self.folder, spelled_commands.release(project, project.next_release).words)
        return RedirectResponse("/release", 303)

    def compare(self, project: Project, form: FormData) -> Response:
        """Put the ticked releases side by side."""
        if not project.may_see:
            raise ParameterError("comparisons hold figures of the table; say that you may see them")
        known = [folder.name for folder in project.releases]
        chosen = [name for name in known if name in form.getlist("chosen")]
        if len(chosen) < 2:
            raise ParameterError("tick at least two releases to compare")
        jobs.start(self.folder, spelled_commands.compare(chosen).words)
        return RedirectResponse("/results", 303)

    def stop(self, project: Project, form: FormData) -> Response:
        """Stop the command that runs."""
        step = jobs.current(self.folder).step
        jobs.stop(self.folder)
        return RedirectResponse(f"/{step}", 303)


def text_of(form: FormData, name: str) -> str:
    """Return the text of a field, without blanks around it; empty where it has none."""
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def _number(form: FormData, name: str) -> float | None:
    text = text_of(form, name)
    try:
        return float(text) if text else None
    except ValueError:
        raise ParameterError("limits of a book are numbers, such as 3 or 0.5") from None
