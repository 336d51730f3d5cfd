"""The documents are true: examples run, flags and commands exist, links and modules resolve."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import typer

from command import review

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
START, METHODS, INDEX = (ROOT / "docs" / f"{name}.md" for name in ("start", "methods", "index"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FENCE = re.compile(r"^```(\w*|\{[a-z-]+\}[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
GONE = {"study"}
"""Commands of earlier versions, which the changelog alone may name."""


def fenced(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text()) if name == language]


def code(page: Path) -> list[str]:
    """Every line of a fenced block and every piece of code within a line."""
    text = page.read_text()
    lines = [line for _, body in FENCE.findall(text) for line in body.splitlines()]
    return [*lines, *INLINE.findall(FENCE.sub("", text))]


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def calls(page: Path) -> list[tuple[str, str]]:
    """Every call of the command in a page: the name of the subcommand, and what follows."""
    found = (re.match(r"pegs ([a-z]+)\b(.*)", line) for line in code(page))
    return [(match[1], match[2]) for match in found if match]


@pytest.fixture(scope="module")
def flags_of() -> dict[str, set[str]]:
    """Give the flags of every command."""
    from pegsynth.cli import commands

    app = typer.Typer()
    commands.register(app)
    group = typer.main.get_command(app)
    return {
        name: {"--help"}.union(*(each.opts + each.secondary_opts for each in command.params))
        for name, command in group.commands.items()
    }


def run(arguments: list[str], folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_python_example_prints_what_the_readme_shows(tmp_path):
    (example,), (shown,) = fenced(README, "python"), fenced(README, "text")
    assert run([sys.executable, "-c", example], tmp_path) == shown


@pytest.mark.slow(seconds=45)
@pytest.mark.parametrize(
    ("page", "blocks", "written"),
    [(README, 2, ()), (START, 4, ("rows.parquet", "first.csv"))],
    ids=["readme", "start"],
)
def test_the_shell_commands_run(page, blocks, written, tmp_path):
    shown = fenced(page, "sh")
    assert len(shown) == blocks
    for block in shown:
        run(["bash", "-euo", "pipefail", "-c", block], tmp_path)
        if "pegs schema" in block:
            review(tmp_path / "schema.toml")
    assert {"public", "internal"} == {path.name for path in (tmp_path / "release").iterdir()}
    assert all((tmp_path / name).is_file() for name in written)


def texts_of(file: Path) -> list[str]:
    """Return the texts of a module or of a file of messages; of an f-string what is fixed."""
    if file.suffix != ".py":
        return [file.read_text()]
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(p.value for p in node.values if isinstance(p, ast.Constant)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def test_messages_that_the_page_of_errors_explains_are_in_the_program():
    package = ROOT / "src" / "pegsynth"
    kinds = (".py", ".toml", ".j2")
    said = [text for file in package.rglob("*") if file.suffix in kinds for text in texts_of(file)]
    page = (ROOT / "docs" / "errors.md").read_text()
    messages = re.findall(r"^\| \*(.+?)\*", page, re.MULTILINE)
    assert len(messages) >= 20
    parts = [part.strip() for message in messages for part in message.split("..") if part.strip()]
    assert [part for part in parts if not any(part in text for text in said)] == []


def test_make_targets_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = {
        name for page in PAGES for name in re.findall(r"\bmake ([a-z-]+)", "\n".join(code(page)))
    }
    assert {"demo", "test", "check", "bench"} <= shown
    assert shown <= set(targets)


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda page: page.name)
def test_commands_and_their_flags_exist(page, flags_of):
    for name, rest in calls(page):
        if page.name == "CHANGELOG.md" and name in GONE:
            continue
        assert name in flags_of, f"pegs {name} is no command"
        for flag in FLAG.findall(rest):
            assert flag in flags_of[name], f"pegs {name} has no flag {flag}"


@pytest.mark.parametrize(
    "page", [README, *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name
)
def test_flags_without_a_command_belong_to_some_command(page, flags_of):
    known = set().union(*flags_of.values())
    alone = [piece for piece in code(page) if piece.startswith("--")]
    for flag in FLAG.findall(" ".join(alone)):
        assert flag in known, f"no command has a flag {flag}"


@pytest.mark.slow
def test_the_code_of_the_python_page_runs(tmp_path):
    code = "\n".join(fenced(ROOT / "docs" / "python.md", "python"))
    printed = run([sys.executable, "-c", code], tmp_path)
    assert "1. Rows were counted" in printed
    assert "models 2 of 2" in printed


@pytest.mark.slow
def test_the_code_of_the_page_of_file_formats_runs(tmp_path):
    (code,) = fenced(ROOT / "docs" / "file-formats.md", "python")
    run([sys.executable, "-c", code], tmp_path)


def test_the_code_of_the_page_of_drafts_runs():
    (code,) = fenced(ROOT / "docs" / "drafts.md", "python")
    told: dict[str, object] = {}
    exec(code, told)
    assert told["schema"].reviewed


def test_the_first_page_mentions_every_command(flags_of):
    assert {name for name, _ in calls(START)} == set(flags_of)


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 110


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda page: page.name)
def test_links_resolve(page):
    for target in LINK.findall(page.read_text()):
        if not target.startswith("https://"):
            name, _, anchor = target.partition("#")
            linked = page.parent / name if name else page
            assert linked.is_file(), target
            assert not anchor or anchor in anchors(linked), target


def test_every_document_is_linked_from_the_readme_or_listed_by_the_index():
    linked = {(ROOT / target).resolve() for target in LINK.findall(README.read_text())}
    listed = re.findall(r"^(?:generated/)?([\w/-]+)$", INDEX.read_text(), re.MULTILINE)
    linked |= {(ROOT / "docs" / f"{name}.md").resolve() for name in listed}
    assert {page for page in PAGES if page != README} <= linked


def rooms() -> list[str]:
    """Return the packages and modules in the table of rooms, from the ground up."""
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("## The rooms")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w/.]+)`", cell)]


def test_the_architecture_lists_every_room():
    source = ROOT / "src" / "pegsynth"
    there = {path.name for path in source.glob("*.py")} - {"__init__.py"}
    there |= {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    assert set(rooms()) == there
    assert len(rooms()) == len(there)


def test_the_rooms_stand_in_the_order_of_their_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (rule["layers"] for rule in contracts["contracts"] if rule["type"] == "layers")
    height = {
        name: -number
        for number, layer in enumerate(layers)
        for name in re.findall(r"pegsynth\.(\w+)", layer)
    }
    order = [height[name.rstrip("/").removesuffix(".py")] for name in rooms()]
    assert set(height) == {name.rstrip("/").removesuffix(".py") for name in rooms()}
    assert order == sorted(order)


def test_a_module_name_tells_without_its_folder():
    names = Counter(
        module.name
        for module in (ROOT / "src" / "pegsynth").rglob("*.py")
        if module.stem != "__init__"
    )
    assert {name for name, times in names.items() if times > 1} == set()


def test_modules_named_in_the_proofs_exist():
    text = (ROOT / "docs" / "maths.md").read_text()
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    assert named
    for name in named:
        outside = name.startswith(("tests/", "checks/", "studies/"))
        home = ROOT if outside else ROOT / "src" / "pegsynth"
        assert (home / name).is_file(), name


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## [{version}]" in changes
    assert "\n### Privacy\n" in changes


def test_every_reason_for_no_guarantee_is_explained():
    from pegsynth.privacy.events import REASONS

    page = (ROOT / "docs" / "guarantee.md").read_text()
    assert [code for code in REASONS if f"`{code}`" not in page] == []


def test_every_method_is_explained_with_its_guarantee():
    from pegsynth.methods import methods

    table = METHODS.read_text().partition("\n**Which one?**")[0]
    lines = [line.split("|") for line in table.splitlines() if line.startswith("| [`")]
    promised = {
        name: line[3].strip() for line in lines for name in re.findall(r"`([\w-]+)`", line[1])
    }
    known = {method.name: method for method in methods()}
    assert set(promised) == set(known)
    assert all((promised[name] == "none") is not known[name].has_proof for name in known)


def test_the_table_of_methods_has_the_rows_of_its_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from checks.bench.methods import EPSILONS, ROWS, WAYS

    begin, end = (f"<!-- total variation: {mark} -->" for mark in ("begin", "end"))
    page = (ROOT / "checks" / "bench" / "RESULTS.md").read_text()
    table = page.partition(begin)[2].partition(end)[0].replace("`", "")
    header, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()
    ]
    assert header == ["rows", "total epsilon", *WAYS, "bootstrap"]
    assert [line[:2] for line in lines] == [
        [f"{rows:,}", f"{epsilon:,g}"] for rows in ROWS for epsilon in EPSILONS
    ]
    assert all(re.fullmatch(r"0\.\d{3} / 0\.\d{3}", cell) for line in lines for cell in line[2:])
