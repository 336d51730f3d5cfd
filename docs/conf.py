"""How Sphinx builds the site: ``make docs`` writes it to build/docs, and it opens offline.

Sphinx and not MkDocs: NumPy docstrings become the reference without another tool, the search
works on pages that are opened as files, and every broken reference is an error (``-W``).
Tutorials are notebooks in plain text; MyST-NB runs them while the site is built and keeps no
output in the repository.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tools"), str(HERE.parent)]

import command_reference  # noqa: E402
import pictures  # noqa: E402
import sample_reports  # noqa: E402

from pegsynth import __version__  # noqa: E402

project, author = "pegsynth", "The pegsynth developers"
copyright = author  # noqa: A001 (Sphinx wants this name)
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/.ipynb_checkpoints", "generated/reports"]
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring, napoleon_google_docstring = True, False
napoleon_use_rtype = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True

html_theme = "furo"
html_title = f"pegsynth {__version__}"
html_static_path = ["static"]
html_extra_path = ["generated/reports"]
html_css_files = ["pictures.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None

GENERATED = HERE / "generated"
COPIED = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "checks/bench/RESULTS.md": "results.md",
}
"""Pages of the repository that stand outside this folder, and their names on the site."""


def _moved(text: str, *, from_root: bool) -> str:
    """Point links to pages that the site has copied to the copies.

    Parameters
    ----------
    from_root
        Whether the text stands at the root of the repository, or in this folder.
    """
    up, down = ("", "") if from_root else ("../", "generated/")
    for outside, inside in COPIED.items():
        text = text.replace(f"]({up}{outside}", f"]({down}{inside}")
    text = text.replace(f"]({up}README.md", f"]({'' if down else '../'}index.md")
    if from_root:
        # The results stand in a folder of their own beside this one.
        text = text.replace("](docs/", "](../").replace("](../../docs/", "](../")
    return text


def _generate() -> None:
    """Write what follows from declarations or stands elsewhere in the repository."""
    GENERATED.mkdir(exist_ok=True)
    for outside, inside in COPIED.items():
        text = (HERE.parent / outside).read_text(encoding="utf-8")
        (GENERATED / inside).write_text(_moved(text, from_root=True), encoding="utf-8")
    command_reference.write(GENERATED / "commands.md")
    pictures.write(GENERATED / "pictures")
    sample_reports.write(GENERATED / "reports")


def _mend_links(_: object, page: str, source: list[str]) -> None:
    if "/" not in page:
        source[0] = _moved(source[0], from_root=False)


def setup(app: object) -> None:
    """Generate pages before the build reads any, and mend links as it does."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    _generate()
    app.connect("source-read", _mend_links)  # type: ignore[attr-defined]
