"""From scored traces to files on disk."""

from __future__ import annotations

import importlib.util
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

__all__ = ["report_of_cards", "require_plots", "write_figures", "write_page"]


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
    """Write the HTML file.

    Raises:
        InputError: It cannot be written.
    """
    page = render_page(report)
    try:
        path.write_text(page, encoding="utf-8")
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


def _life(card: Scorecard, keys: Keys, damaged_lines: DamagedLines) -> Life:
    path = Path(card.run.path or "")
    return life_of(read_trace(path, keys=keys, damaged_lines=damaged_lines), card)
