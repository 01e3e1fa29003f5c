"""`skyfall morpheus …`: serve a local world, write demonstrations, measure bounds.

Importing this module loads neither Gymnasium nor a server; each command imports what it needs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from skyfall_core.errors import InputError, suggestion

__all__ = ["app"]

app = typer.Typer(help="Worlds that speak the MORPHEUS API.", no_args_is_help=True)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8282,
    seed: Annotated[int, typer.Option(min=0, help="Mixed into the seeds of worlds nobody seeds.")] = 0,
    tick_minutes: Annotated[float, typer.Option(min=0.1, help="Simulated minutes an action takes.")] = 10.0,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Let time pass by the clock, not by action.")
    ] = False,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the worlds in this folder, over restarts and kills.", show_default=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log nothing but errors.")] = False,
) -> None:
    """Serve local worlds over HTTP until interrupted."""
    from skyfall_morpheus.errors import WorldConfigError  # noqa: PLC0415
    from skyfall_morpheus.local.api import LocalApi  # noqa: PLC0415
    from skyfall_morpheus.local.app import serve as serve_app  # noqa: PLC0415
    from skyfall_morpheus.local.model import Rules  # noqa: PLC0415
    from skyfall_morpheus.local.store import Store  # noqa: PLC0415

    _require_free(host, port)
    if real_time and state_dir is not None:
        _fail(
            "--state-dir repeats requests to bring worlds back, which --real-time makes impossible: drop one"
        )
    api = LocalApi(Rules(tick_minutes=tick_minutes), seed, real_time=real_time)
    if state_dir is None:
        serve_app(api, host, port, quiet=quiet)
        return
    try:
        store = Store(state_dir, api)
    except WorldConfigError as failure:
        _fail(str(failure))
    try:
        serve_app(api, host, port, quiet=quiet)
    finally:
        store.close()


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The JSONL file to write.")],
    steps: Annotated[int, typer.Option(min=1, help="Steps in each configuration.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Spread over the configurations.")] = 0,
    configuration: Annotated[
        list[str] | None, typer.Option(help="Play only these; repeatable.", show_default=False)
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="Record tools without arguments; easier to imitate.")
    ] = False,
    observe: Annotated[
        str, typer.Option(help="What is recorded as seen: text, full, or brief with letters for tools.")
    ] = "text",
    gamma: Annotated[float, typer.Option(min=0.0, max=1.0, help="Discount of the recorded returns.")] = 0.95,
) -> None:
    """Write what the scripted policies do, one JSON object a step."""
    from skyfall_morpheus.configurations import CANONICAL  # noqa: PLC0415
    from skyfall_morpheus.demo import write_demonstrations  # noqa: PLC0415
    from skyfall_morpheus.settings import Observe  # noqa: PLC0415

    chosen = configuration or list(CANONICAL)
    for name in chosen:
        if name not in CANONICAL:
            _fail(f"--configuration: {name!r} is unknown; {suggestion(name, CANONICAL)}")
    kinds = [str(kind.value) for kind in Observe]
    if observe not in kinds:
        _fail(f"--observe: {observe!r}: {suggestion(observe, kinds)}")
    written = write_demonstrations(
        output, chosen, steps, seed, observe=observe, arguments=not bare, gamma=gamma
    )
    typer.echo(f"{output}: {written} steps in {len(chosen)} configurations", err=True)


@app.command()
def bounds(
    steps: Annotated[int, typer.Option(min=1, help="Steps in each configuration.")] = 300,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 10,
) -> None:
    """Measure the best level that scripted policies hold, as JSON for `run.reward_upper_bounds`."""
    from skyfall_core.seeding import spread_seed  # noqa: PLC0415
    from skyfall_morpheus.demo import measure_bounds  # noqa: PLC0415

    found = measure_bounds(steps, spread_seed(0, seeds))
    typer.echo(json.dumps({name: round(value, 4) for name, value in found.items()}))


def _require_free(host: str, port: int) -> None:
    """Say that a port is taken before a server does so in its own words."""
    import socket  # noqa: PLC0415

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            _fail(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port")


def _fail(message: str) -> NoReturn:
    """End with status 2; the `skyfall` command guards its own commands, not those of plugins."""
    typer.echo(message, err=True)
    raise typer.Exit(InputError.exit_status)
