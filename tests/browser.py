"""A real headless Chromium for tests of pages, and questions to ask of a page in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import system

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

# Everything below the body that is wider than the window, but for what lies in a box that
# scrolls by itself or is hidden from sight on purpose.
OVERFLOWING = """() => [...document.querySelectorAll('body *')].filter(e => {
  if (e.closest('.scroll, .silent, caption, .skip, .tip')) return false;
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.outerHTML.slice(0, 80))"""

# Text whose contrast with what lies behind it is below 4.5 (WCAG AA).
FAINT = """() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = parts(colour).map(v => (v /= 255) <= .03928 ? v / 12.92
      : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (parts(colour)[3] !== 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const texts = [...document.querySelectorAll('body *')].filter(e =>
    [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
    && e.tagName !== 'title' && e.checkVisibility());
  return texts.map(e => {
    const style = getComputedStyle(e);
    const [a, b] = [light(e.closest('svg') ? style.fill : style.color), light(behind(e))];
    return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.textContent.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""

# Every figure: its size, its marks, and marks that lie outside of it.
DRAWN = """() => [...document.querySelectorAll('svg.chart')].map(svg => {
  const box = svg.getBoundingClientRect();
  const shapes = svg.querySelectorAll('path, rect, line, circle, polygon');
  const marks = [...shapes].filter(e => !e.closest('.tip'));
  const outside = marks.filter(e => {
    const mark = e.getBoundingClientRect();
    return mark.left < box.left - 2 || mark.right > box.right + 2
      || mark.top < box.top - 2 || mark.bottom > box.bottom + 2;
  });
  return {width: box.width, height: box.height, marks: marks.length, outside: outside.length,
    texts: svg.querySelectorAll('text').length, label: svg.getAttribute('aria-label')};
})"""


@dataclass
class Opened:
    """A page in the browser, and all that it said and asked for."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium; skip the test, or fail it under CI, where there is none."""
    system.require("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(ARGUMENTS), timeout=120_000
        )
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started: Any, path: Any, *, viewport=WIDE, scheme="light") -> Iterator[Opened]:
    """Open a file in a fresh profile and listen."""
    context = started.new_context(viewport=viewport, color_scheme=scheme)
    context.set_default_timeout(120_000)
    try:
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.messages.append(message.text))
        found.page.on("pageerror", lambda error: found.messages.append(str(error)))
        found.page.on("dialog", lambda dialog: found.messages.append(dialog.message))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(path.as_uri())
        yield found
    finally:
        context.close()
