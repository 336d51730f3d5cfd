"""Charts as SVG and PNG, drawn by vl-convert without a browser and without a network."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pegsynth.errors import OutputError

if TYPE_CHECKING:
    import altair as alt

    Chart = alt.Chart | alt.LayerChart | alt.FacetChart

_PNG_SCALE = 2.0
_LEAST_SPACE = 64 << 30
# A chart brings its rows along; no address is allowed, so nothing can be fetched.
_NO_ADDRESS: list[str] = []
_CLIP = re.compile(r'((?:clip-path="url\(#|<clipPath id="))clip(\d+)')


def svg_of(chart: Chart) -> str:
    """Draw a chart as SVG; the same chart gives the same text."""
    import vl_convert

    check_drawing()
    specification = chart.to_dict(validate=False)
    svg: str = vl_convert.vegalite_to_svg(specification, allowed_base_urls=_NO_ADDRESS)
    return _renumbered(svg)


def save_chart(
    chart: Chart, path_without_suffix: str | Path, *, mode: int | None = None
) -> tuple[Path, Path]:
    """Write a chart as ``.svg`` and as ``.png``.

    Parameters
    ----------
    chart
        What to draw.
    path_without_suffix
        The two files' path up to the suffix.
    mode
        Permissions of the files; None gives what the umask leaves of 0666.

    Returns
    -------
    tuple of Path
        The SVG and the PNG.

    Raises
    ------
    OutputError
        The folder is missing or cannot be written to.
    """
    import vl_convert

    from pegsynth.tables.atomic import atomic_file

    stem = Path(path_without_suffix)
    paths = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    svg = svg_of(chart)
    # Twice the size, for sharp print.
    png: bytes = vl_convert.svg_to_png(svg, scale=_PNG_SCALE)
    for path, content in zip(paths, (svg.encode(), png), strict=True):
        with atomic_file(path, mode=mode) as temporary:
            temporary.write_bytes(content)
    return paths


def check_drawing() -> None:
    """Refuse to draw where a library is not there, or reserves more than it may and would crash."""
    for package in ("altair", "vl_convert"):
        if find_spec(package) is None:
            raise OutputError(f"figures need {package}; install pegsynth again with all it needs")
    try:
        import resource
    except ImportError:
        # Windows has no such limits.
        return
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY and space < _LEAST_SPACE:
        raise OutputError(
            "figures cannot be drawn: the address space is limited (ulimit -v) to less than 64 GiB "
            "and the library that draws reserves more; limit the memory by a control group instead"
        )


def _renumbered(svg: str) -> str:
    """Count clip paths from one; vl-convert counts on from one drawing to the next."""
    numbers: dict[str, int] = {}
    return _CLIP.sub(lambda m: f"{m[1]}clip{numbers.setdefault(m[2], len(numbers) + 1)}", svg)
