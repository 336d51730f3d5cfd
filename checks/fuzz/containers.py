"""Containers taken apart and put together again, with a checksum that fits whatever they say."""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from checks.fuzz.mutations import damaged
from checks.fuzz.tables import pickled
from checks.fuzz.trees import json_text

DTYPES = ("|O", "<M8[s]", "<U9", "|V8", "<c16", ">i8", "<i8", "<f8", "|b1", "object", "<u2", "no")
LENGTHS = (0, 1, -1, 1 << 31, 1 << 40, 10**12, 1 << 62, 1 << 63, 10**30)


@dataclass(frozen=True)
class Parts:
    """Notice, header and the stored bytes of every array."""

    notice: bytes
    header: dict[str, Any]
    bodies: list[bytes]

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest within the header."""
        found: dict[str, Any] = self.header["manifest"]
        return found

    def plain(self, name: str) -> bytes:
        """Return the bytes of an array, unpacked."""
        for entry, body in zip(self.header["arrays"], self.bodies, strict=True):
            if entry["name"] == name:
                return zlib.decompress(body) if entry["packed"] else body
        raise KeyError(name)


def taken_apart(content: bytes) -> Parts:
    """Return the parts of a sound container."""
    notice, line, rest = content.split(b"\n", 2)
    header = json.loads(line)
    bodies = []
    for entry in header["arrays"]:
        bodies.append(rest[: entry["stored"]])
        rest = rest[entry["stored"] :]
    return Parts(notice, header, bodies)


def put_together(parts: Parts, line: bytes | None = None) -> bytes:
    """Return a container; `line` stands for its header if it is given."""
    line = json_text(parts.header).encode("utf-8", "surrogatepass") if line is None else line
    content = b"\n".join((parts.notice, line, b"".join(parts.bodies)))
    return content + hashlib.sha256(content).hexdigest().encode() + b"\n"


def with_manifest(parts: Parts, manifest: Any) -> Parts:
    """Return the parts with another manifest, its place in the header unchanged."""
    return replace(parts, header={**parts.header, "manifest": manifest})


def with_array(parts: Parts, name: str, content: bytes, /, **entry: Any) -> Parts:
    """Return the parts with the bytes of an array replaced or added, and its entry changed."""
    arrays, bodies = [], []
    there = {each["name"] for each in parts.header["arrays"]}
    new = {"name": name, "dtype": "|u1", "shape": [len(content)]}
    listed = parts.header["arrays"] + ([new] if name not in there else [])
    for each, body in zip(listed, [*parts.bodies, b""], strict=False):
        if each["name"] == name:
            changed = {**each, "stored": len(content), "packed": False, **entry}
            arrays.append(changed)
            bodies.append(content)
        else:
            arrays.append(each)
            bodies.append(body)
    return Parts(parts.notice, {**parts.header, "arrays": arrays}, bodies)


def wild_arrays(parts: Parts, source: random.Random) -> Parts:
    """Change what the header says of an array, or its bytes."""
    arrays = [dict(each) for each in parts.header["arrays"]]
    if not arrays or source.random() < 0.1:
        return with_array(parts, "original rows", pickled(), dtype="|O", shape=[1])
    place = source.randrange(len(arrays))
    each, bodies = arrays[place], list(parts.bodies)
    kind = source.random()
    if kind < 0.2:
        each["dtype"] = source.choice(DTYPES)
    elif kind < 0.4:
        shape = each["shape"]
        wild = [source.choice(LENGTHS)]
        shapes = (shape[::-1], [*shape, 1], wild, [], [0, *shape], [0, *wild], [1] * 40)
        each["shape"] = source.choice(shapes)
    elif kind < 0.5:
        each["stored"] = source.choice((*LENGTHS, each["stored"] + 1))
    elif kind < 0.6:
        each["packed"] = source.choice((True, False, None, 1))
    elif kind < 0.7:
        each["name"] = source.choice((*(other["name"] for other in arrays), "x", "", "0: tables"))
    elif kind < 0.8:
        bodies[place] = _bomb()
        each |= {"stored": len(bodies[place]), "packed": True}
        each["shape"] = [source.choice((1, 1 << 20, 1 << 23, 1 << 30, *each["shape"]))]
    else:
        plain = parts.plain(each["name"])
        flipped = damaged(plain, source)
        if source.random() < 0.8:
            flipped = (flipped + bytes(len(plain)))[: len(plain)]
        bodies[place] = flipped
        each |= {"stored": len(flipped), "packed": False}
    return Parts(parts.notice, {**parts.header, "arrays": arrays}, bodies)


@cache
def _bomb() -> bytes:
    return zlib.compress(bytes(1 << 26))
