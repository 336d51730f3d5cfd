"""A small table, its reviewed schema and its model, made once by the command itself."""

import random

import pytest

from command import done, review

FIRST, SECOND, THIRD = ["x", "y", "z"], ["p", "q", ""], ["=1+1", "k"]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    source = random.Random(1)
    lines = ["a,b,c,n"]
    for _ in range(300):
        picks = [source.choice(options) for options in (FIRST, SECOND, THIRD)]
        lines.append(",".join([*picks, f"{source.randrange(1000)}.5"]))
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    done("schema", folder / "data.csv", "--binning", "equal-width", "-o", folder / "schema.toml")
    review(folder / "schema.toml")
    done("fit", folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / "m.pegs")
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """Give a fresh folder with copies of data.csv, schema.toml and m.pegs."""
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path
