"""Checks the words of the documents: how many, for whom, and in whose language.

Run as ``python tools/words.py``; `make check` does. It ends with status 1 if something is found.
Words of our own that have a word of the field stand in docs/glossary.md, as what not to say.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_WORDS = 44_500
"""In all pages together but those of `UNCOUNTED`."""
MOST_LINES = {"README.md": 130, "CHANGELOG.md": 150, "ARCHITECTURE.md": 120}
UNCOUNTED = {"maths", "schema", "ledger", "options", "licences", "api", "notes-on-research"}
"""Proofs, pages that a program writes, and the page of what was tried."""
MAY_SAY = {"maths", "glossary", "notes-on-research", "ledger"}
"""Pages where words of the code are explained or quoted."""
NOT_SAID = {
    r"\blaws? of\b": "distribution of",
    r"\bdeeds?\b": "preprocessing",
    r"\bpapers of\b": "release documents of",
    r"\bbought\b": "paid for",
    r"\bdrown\w*\b": "below the noise",
    r"\bbetray\w*\b": "disclose",
    r"\bblamed?\b": "flagged",
    r"\bmend(s|ed)?\b": "fixed",
    r"\banew\b": "again",
    r"\bout of place\b": "total variation distance",
    r"\b(does|do) not go with\b": "cannot be combined with",
    r"\bpurse\b": "privacy filter",
    r"\bto hand over\b": "to pass",
    r"\bturned columns\b": "rotated columns",
}


def pages() -> list[Path]:
    """Return the pages that somebody wrote, tutorials among them; the site adds others."""
    written = (ROOT / "docs").glob("**/*.md")
    return sorted(page for page in written if "generated" not in page.parts)


def findings() -> Iterator[str]:
    """Yield what is wrong, a line each."""
    counted = sum(len(page.read_text().split()) for page in pages() if page.stem not in UNCOUNTED)
    if counted > MOST_WORDS:
        yield f"docs: {counted:,} words, more than {MOST_WORDS:,}"
    for name, most in MOST_LINES.items():
        if (lines := len((ROOT / name).read_text().splitlines())) > most:
            yield f"{name}: {lines} lines, more than {most}"
    for page in pages():
        name = page.relative_to(ROOT)
        text = page.read_text()
        if page.stem not in UNCOUNTED | {"index"} and not re.search(r"^\*For .+\*$", text, re.M):
            yield f"{name}: does not say for whom it is, as in *For analysts.*"
    for page in [ROOT / "README.md", *pages()]:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for word, better in NOT_SAID.items() if page.stem not in MAY_SAY else ():
                if found := re.search(word, line, re.IGNORECASE):
                    where = f"{page.relative_to(ROOT)}:{number}"
                    yield f"{where}: {found[0]!r}; say {better!r}"


def main() -> None:
    """Write what was found, a line each, and end with status 1 if there is anything."""
    found = [f"{line}\n" for line in findings()]
    sys.stdout.writelines(found)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
