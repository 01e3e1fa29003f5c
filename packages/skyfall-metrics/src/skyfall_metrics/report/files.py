"""From scored traces to files on disk."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from skyfall_metrics.errors import InputError, MissingExtraError
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.report.contents import Report, report_of
from skyfall_metrics.report.figures import all_figures
from skyfall_metrics.report.formats import FigureFormat
from skyfall_metrics.report.lives import Life, life_of
from skyfall_metrics.report.page import render_page
from skyfall_metrics.rows import Keys
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.statistics import Bootstrap

__all__ = ["refuse_input", "report_of_cards", "require_plots", "write_figures", "write_page"]


def report_of_cards(
    cards: Iterable[Scorecard], *, keys: Keys, damaged_lines: DamagedLines, title: str, bootstrap: Bootstrap
) -> Report:
    """A report of scored traces, whose files are read once more for their curves, one at a time.

    Args:
        cards: Scorecards of traces that were read from files.
        keys: What the traces call things, as they were scored.
        damaged_lines: What to do about unreadable lines, likewise.
        title: Heading of the page.
        bootstrap: How intervals are computed.
    """
    lives = [_life(card, keys, damaged_lines) for card in cards]
    return report_of(lives, title=title, bootstrap=bootstrap)


def write_page(report: Report, path: Path) -> Path:
    """Write the HTML file, whole or not at all: a page that was there stays until the new one is complete.

    Raises:
        InputError: It cannot be written.
    """
    page = render_page(report).encode()
    try:
        if path.exists() and not path.is_file():  # a pipe, /dev/stdout: nothing there to replace
            path.write_bytes(page)
        else:
            _replace(Path(os.path.realpath(path)), page)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from None
    return path


def write_figures(report: Report, folder: Path, form: FigureFormat) -> list[Path]:
    """Write every figure that these runs have.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InputError: The folder cannot be written.
    """
    require_plots()
    from skyfall_metrics.report.plots import save_figures  # noqa: PLC0415 - needs the extra

    return save_figures([figure for figure in all_figures(report).values() if figure], folder, form)


def require_plots() -> None:
    """Say so before any work is done when figures cannot be drawn.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("--figures: drawing figures needs: pip install 'skyfall-metrics[plots]'")


def refuse_input(path: Path, inputs: Iterable[Path]) -> None:
    """Say so before any work is done when a result would overwrite what it is made from.

    Raises:
        InputError: `path` is one of `inputs`.
    """
    if any(_is_same(path, file) for file in inputs):
        raise InputError(f"{path}: the report is made from this file; name another one with --output")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there, or cannot be looked at
        return False


def _replace(path: Path, content: bytes) -> None:
    """Put a finished file in the place of `path`."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _life(card: Scorecard, keys: Keys, damaged_lines: DamagedLines) -> Life:
    path = Path(card.run.path or "")
    return life_of(read_trace(path, keys=keys, damaged_lines=damaged_lines), card)
