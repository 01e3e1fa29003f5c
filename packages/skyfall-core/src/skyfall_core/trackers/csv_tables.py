"""Window metrics and shifts as two CSV files in the run's directory, for spreadsheets and pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfall_core.atomic import write_whole
from skyfall_core.errors import ConfigError
from skyfall_core.trackers.base import TrackedRun, metrics_of

if TYPE_CHECKING:
    from skyfall_core.reports import RunResult, WindowReport

__all__ = ["CsvTracker"]

SHIFT_COLUMNS = ("step", "previous", "current", "origin", "world")


class CsvTracker:
    """Writes `windows.csv` and `shifts.csv`; a row is in its file before the next window is collected.

    A metric that first appears later adds a column, empty in the rows before it. A resumed run's rows
    from behind its checkpoint are cut off first.

    Args:
        run: The run to follow.
        directory: Where the files go; the run's own directory when None.

    Raises:
        ConfigError: If there is no directory, or one of the files is somebody else's.
    """

    def __init__(self, run: TrackedRun, directory: str | None = None) -> None:
        folder = run.directory if directory is None else Path(directory)
        if folder is None:
            raise ConfigError("directory: the document names no run.output_dir; say where the tables go")
        self._windows = _Table(folder / "windows.csv", ("step", "regimes", "reward/mean"))
        self._shifts = _Table(folder / "shifts.csv", SHIFT_COLUMNS)

    def begin(self, run: TrackedRun) -> None:
        """Begin both tables, or cut them back to where a resumed run goes on."""
        self._windows.begin(run.resumed_at)
        self._shifts.begin(None if run.resumed_at is None else run.resumed_at - 1)

    def window(self, report: WindowReport) -> None:
        """Add a row to `windows.csv`; `step` is how many steps the run has taken."""
        row = {"step": report.steps, "regimes": " ".join(report.regimes), **metrics_of(report)}
        self._windows.add(row)

    def shift(self, event: Mapping[str, Any]) -> None:
        """Add a row to `shifts.csv`; `step` is the first one under the new configuration."""
        self._shifts.add({name: event.get(name) for name in SHIFT_COLUMNS})

    def finish(self, result: RunResult | None) -> None:
        """Nothing: every row is written when it comes."""


class _Table:
    """A CSV file whose columns may grow. The first column is `step`."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path = path
        self._columns = list(columns)
        try:
            with path.open(encoding="utf-8", newline="") as file:
                header = next(csv.reader(file), [])
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError, csv.Error) as error:
            raise ConfigError(f"directory: {path} cannot be read ({error}); choose another") from error
        if header and header[: len(columns)] != self._columns:
            raise ConfigError(
                f"directory: {path} is no table of this tracker's and is left alone; choose another"
            )

    def begin(self, last_step: int | None) -> None:
        """Begin an empty table, or keep the rows up to `last_step`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [] if last_step is None else self._rows()
        self._write(row for row in rows if row["step"].isdigit() and int(row["step"]) <= (last_step or 0))

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row, under more columns than before where it has others."""
        new = [name for name in row if name not in self._columns]
        if new:
            rows = self._rows()
            self._columns += new
            self._write(rows)
        with self.path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, self._columns).writerow(row)

    def _rows(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        found = reader.fieldnames or ()
        self._columns += [name for name in found if name not in self._columns]
        return rows

    def _write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace the file in one step, so that an interruption loses no row."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.path, text.getvalue().encode())
