"""Which program made a ledger: known from where it can be known, and left out elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import msgspec
import pytest

import pegsynth
from pegsynth.errors import ParameterError
from pegsynth.privacy import Program, program, this_program
from small_release import small_session

COMMIT = "0123456789abcdef" * 2 + "01234567"
UNKNOWN = ("", False)
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def git(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    who = {
        f"GIT_{role}_{what}": "x@y"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    command = ["git", "-c", "commit.gpgsign=false", "-C", str(folder), *arguments]
    done = subprocess.run(
        command, env=environment | who, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository of this project with one commit; returns its package."""
    package = tmp_path / "checkout" / "src" / "pegsynth"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    root = package.parent.parent
    (root / "pyproject.toml").write_text('[project]\nname = "pegsynth"\n')
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    return package


@needs_git
def test_a_checkout_knows_its_commit(checkout):
    root = checkout.parent.parent
    commit = git(root, "rev-parse", "HEAD")
    assert program._of_checkout(checkout) == (commit, False)
    (root / "notes.txt").write_text("beside the source")
    assert program._of_checkout(checkout) == (commit, False)
    (checkout / "new.py").write_text("")
    assert program._of_checkout(checkout) == (commit, True)
    (checkout / "new.py").unlink()
    (checkout / "__init__.py").write_text("changed = 1\n")
    assert program._of_checkout(checkout) == (commit, True)


@needs_git
def test_a_worktree_of_a_checkout_knows_its_own(checkout, tmp_path):
    root = checkout.parent.parent
    git(root, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    package = tmp_path / "tree" / "src" / "pegsynth"
    (package / "__init__.py").write_text("changed = 1\n")
    git(tmp_path / "tree", "commit", "--quiet", "-am", "second")
    commit = git(tmp_path / "tree", "rev-parse", "HEAD")
    assert commit != git(root, "rev-parse", "HEAD")
    assert program._of_checkout(package) == (commit, False)


@needs_git
def test_the_surroundings_do_not_decide_which_repository_is_asked(checkout, monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "another project")
    expected = (git(checkout.parent.parent, "rev-parse", "HEAD"), False)
    monkeypatch.chdir(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert program._of_checkout(checkout) == expected


@needs_git
def test_a_copy_inside_another_project_has_no_commit(checkout):
    """Its repository is somebody else's, and its commit would be a lie."""
    root = checkout.parent.parent
    (root / "pyproject.toml").write_text('[project]\nname = "hospital"\n')
    assert program._of_checkout(checkout) == UNKNOWN
    (root / "pyproject.toml").unlink()
    assert program._of_checkout(checkout) == UNKNOWN
    vendored = root / "vendor" / "src" / "pegsynth"
    vendored.mkdir(parents=True)
    (root / "vendor" / "pyproject.toml").write_text('[project]\nname = "pegsynth"\n')
    assert program._of_checkout(vendored) == UNKNOWN
    installed = root / "lib" / "site-packages" / "pegsynth"
    installed.mkdir(parents=True)
    assert program._of_checkout(installed) == UNKNOWN


@needs_git
def test_a_repository_that_cannot_be_read_gives_no_commit(checkout, monkeypatch):
    root = checkout.parent.parent
    (root / ".git" / "HEAD").write_text("nonsense\n")
    assert program._of_checkout(checkout) == UNKNOWN
    shutil.rmtree(root / ".git")
    git(root, "init", "--quiet")
    # A repository without a commit answers "(initial)", which is none.
    commit, _ = program._of_checkout(checkout)
    assert not program._COMMIT.fullmatch(commit)


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    package = tmp_path / "src" / "pegsynth"
    package.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text('name = "pegsynth"\n')
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program._of_checkout(package) == UNKNOWN


def test_a_wheel_knows_what_its_builder_said(tmp_path):
    assert program._of_build(tmp_path) == UNKNOWN
    for text, commit in [
        (json.dumps({"commit": COMMIT}), COMMIT),
        (json.dumps([COMMIT]), ""),
        (json.dumps({"commit": 7}), ""),
        ("{", ""),
        ("\ud800".encode("utf-8", "surrogatepass"), ""),
    ]:
        file = tmp_path / program.BUILD_FILE
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert program._of_build(tmp_path) == (commit, False)


class Installed:
    """An installation as pip leaves it behind."""

    def __init__(self, folder, text):
        self.folder, self.text = folder, text

    def locate_file(self, name):
        return self.folder / name

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.text


@pytest.mark.parametrize(
    ("text", "commit"),
    [
        (json.dumps({"url": "x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}), COMMIT),
        (json.dumps({"url": "file:///x", "dir_info": {"editable": True}}), ""),
        (json.dumps({"vcs_info": 3}), ""),
        ("[]", ""),
        ("{", ""),
        (None, ""),
    ],
)
def test_an_installation_from_a_repository_knows_its_commit(tmp_path, monkeypatch, text, commit):
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(tmp_path, text))
    assert program._of_installation(tmp_path / "pegsynth") == (commit, False)
    # What is installed elsewhere says nothing of what runs here.
    assert program._of_installation(tmp_path / "another" / "pegsynth") == UNKNOWN


def test_what_is_not_installed_has_no_record(tmp_path, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert program._of_installation(tmp_path) == UNKNOWN


def test_this_program_is_known_once_and_for_all():
    assert this_program() is this_program()
    assert this_program().version == pegsynth.__version__


@pytest.mark.parametrize(
    "fields", [{"version": ""}, {"version": "1" * 101}, {"version": "1", "commit": "main"}]
)
def test_what_is_no_program_is_refused(fields):
    with pytest.raises(ParameterError):
        Program(**fields)


def test_nothing_is_started_before_a_ledger_is_made():
    """Neither on import nor for help; git is asked when a ledger needs it."""
    code = """
import subprocess, sys

def started(*arguments, **options):
    raise SystemExit(f"started {arguments}")

subprocess.Popen.__init__ = started
import pegsynth, pegsynth.privacy, pegsynth.pipeline.running
from pegsynth.cli.main import main
sys.argv = ["pegs", "--help"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: pegs" in done.stdout


def test_help_does_not_load_what_asks():
    code = """
import sys
from pegsynth.cli.main import main
sys.argv = ["pegs", "--help"]
try:
    main()
finally:
    print([n for n in ("importlib.metadata", "pegsynth.privacy", "polars") if n in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] in ("[]", "['importlib.metadata']"), done.stdout


def test_a_ledger_says_no_more_of_where_it_was_made():
    """Neither the machine nor the day: the same noise gives the same file."""
    ledger = small_session(epsilon=20.0, rows=5).ledger
    content = json.loads(ledger.to_json())
    assert content["programs"] == [json.loads(msgspec.json.encode(this_program()))]
    assert set(content["programs"][0]) <= {"version", "commit", "changed"}
    assert str(Path(pegsynth.__file__).parent) not in ledger.to_json()
    assert ledger.to_json() == small_session(epsilon=20.0, rows=5).ledger.to_json()
