"""`skyfall run`: one experiment, from its document to its scorecard."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyfall_core import plugins
from skyfall_core.cli.options import AsJson, Document, External, Overwrite, Quiet, Resume, Settings
from skyfall_core.cli.progress import progress_of
from skyfall_core.cli.reporting import interruptible, say
from skyfall_core.errors import ConfigError, RunError
from skyfall_core.plugins import Group

if TYPE_CHECKING:
    from skyfall_core.config import ExperimentConfig
    from skyfall_core.reports import RunResult
    from skyfall_core.trace import TraceMode

__all__ = ["run", "run_and_tell"]

SECONDS_TO_FINISH_A_WINDOW = 1.0
"""How long an interrupted run may take to end its window and write a checkpoint."""


def run(
    config: Document,
    settings: Settings = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Write the trained policy into an export bundle."),
    ] = None,
    external: External = None,
) -> None:
    """Run one experiment, record it, and print its scorecard."""
    from skyfall_core.config import load_config  # noqa: PLC0415 - kept out of --help
    from skyfall_core.trace import TraceMode  # noqa: PLC0415

    if overwrite and resume:
        raise ConfigError("--overwrite and --resume exclude each other; give one of them")
    if external is not None and export is None:
        raise ConfigError(f"--external {external}: says where a bundle's weights go; give --export too")
    experiment = load_config(config, settings or ())
    again = ["skyfall", "run", str(config), *(f"--set={value}" for value in settings or ()), "--resume"]
    again += [f"--export={export}"] if export is not None else []
    again += [f"--external={external}"] if external is not None else []
    mode = TraceMode.OVERWRITE if overwrite else TraceMode.RESUME if resume else TraceMode.CREATE
    result = run_and_tell(
        experiment,
        mode=mode,
        quiet=quiet,
        again=shlex.join(again),
        export_dir=export,
        export_external=external,
    )
    if result.export_path is not None and not quiet:
        say(f"exported {shown(result.export_path)}")
    if as_json:
        typer.echo(_as_json(result))
    elif result.trace_path is None:
        say("nothing was recorded: the document names no run.output_dir")
    else:
        _score(result.trace_path, quiet=quiet)


def run_and_tell(
    experiment: ExperimentConfig,
    *,
    overwrite: bool = False,
    quiet: bool,
    mode: TraceMode | None = None,
    again: str | None = None,
    export_dir: Path | None = None,
    export_external: Path | None = None,
) -> RunResult:
    """Run one experiment with progress; say where the record is when it stops early.

    Args:
        experiment: What to run.
        overwrite: Whether to replace a trace; `mode` wins over it.
        quiet: Whether to show no progress.
        mode: What to do about a trace that is already there.
        again: The command that goes on with the run, for who interrupts it.
        export_dir: As `run_experiment` takes it.
        export_external: As `run_experiment` takes it.
    """
    from skyfall_core.experiment import run_experiment, trace_path_for  # noqa: PLC0415
    from skyfall_core.trace import TraceMode  # noqa: PLC0415

    mode = mode or (TraceMode.OVERWRITE if overwrite else TraceMode.CREATE)
    path, budget = trace_path_for(experiment), experiment.rollout.total_steps
    grace = SECONDS_TO_FINISH_A_WINDOW if path is not None and experiment.run.checkpoint_every else 0.0
    before = _state(path)
    try:
        with (
            interruptible(grace) as should_stop,
            progress_of(str(experiment.run.name), budget, quiet=quiet) as on_window,
        ):
            return run_experiment(
                experiment,
                trace_mode=mode,
                on_window=on_window,
                should_stop=should_stop,
                export_dir=export_dir,
                export_external=export_external,
            )
    except SystemExit as error:  # foreign code that exits would end a run, or a sweep, as if all were well
        raise RunError(f"{experiment.run.name}: what it runs called exit({error.code!r})") from error
    except KeyboardInterrupt:
        if path is not None and _state(path) not in (None, before):
            say(f"stopped; every step taken is in {shown(path)}")
            say(f"score it with: skyfall score {shown(path.parent)}")
            if again is not None:
                say(_how_to_go_on(path, again))
        raise


def _how_to_go_on(path: Path, again: str) -> str:
    """The command that goes on with a run, where there is something to go on from."""
    from skyfall_core.checkpoints import CHECKPOINTS  # noqa: PLC0415 - kept out of --help

    if any((path.parent / CHECKPOINTS).glob("step-*")):
        return f"go on with: {again}"
    return "it has no checkpoint to go on from; run.checkpoint_every says how often one is written"


def _state(path: Path | None) -> tuple[int, int] | None:
    """What tells one recording at `path` from another; None where there is none."""
    if path is None or not path.exists():
        return None
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def shown(path: Path) -> str:
    """`path` as short as it can be typed from here."""
    resolved = path.resolve()
    return str(resolved.relative_to(Path.cwd())) if resolved.is_relative_to(Path.cwd()) else str(resolved)


def _score(trace: Path, *, quiet: bool) -> None:
    """Print the scorecard through the `score` command, if a distribution provides it."""
    if not quiet:
        say(f"recorded {shown(trace)}")
    if "score" not in plugins.catalogue(Group.COMMANDS):
        say("to score it: pip install skyfall-metrics, then: skyfall score " + shown(trace.parent))
        return
    score = plugins.load(plugins.find(Group.COMMANDS, "score"))
    score([trace.parent])


def _as_json(result: RunResult) -> str:
    """The result as one line; NaN becomes null, and what an environment reports without JSON form a text."""
    import msgspec  # noqa: PLC0415 - kept out of --help

    from skyfall_core.trace import plain  # noqa: PLC0415

    def plain_or_text(value: Any) -> Any:
        try:
            return plain(value)
        except TypeError:
            return str(value)

    items = {
        "run_id": result.run_id,
        "steps": result.steps,
        "regimes": result.regimes,
        "stationary": result.stationary,
        "trace_path": result.trace_path,
        "export_path": result.export_path,
        "provenance": result.provenance,
        "last_window": result.window_metrics[-1] if result.window_metrics else {},
    }
    return msgspec.json.encode(items, enc_hook=plain_or_text).decode()
