"""`turnout sim-backend`: an honest stand-in for a GPU server."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from turnout_api.vocabulary import Family
from turnout_router.simbackend import SimBackend, SimOptions

_DEFAULTS = SimOptions()
_WRONG_OPTIONS = 2


def sim_backend(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 = any free port.")] = _DEFAULTS.port,
    host: Annotated[str, typer.Option(help="Where it listens.")] = _DEFAULTS.host,
    model: Annotated[
        list[str] | None, typer.Option(help="ID; several make a server that loads and unloads.", show_default="sim")
    ] = None,
    family: Annotated[
        Family, typer.Option(case_sensitive=False, help="The kind of server that it behaves like.")
    ] = _DEFAULTS.family,
    prefill_tokens_per_second: Annotated[
        float, typer.Option(min=0, help="0 = prompts take no time.")
    ] = _DEFAULTS.prefill_tokens_per_second,
    decode_tokens_per_second: Annotated[
        float, typer.Option(min=0, help="Of each slot; 0 = answers take no time.")
    ] = _DEFAULTS.decode_tokens_per_second,
    image_seconds: Annotated[
        float, typer.Option(min=0, help="For one picture of 1024x1024 and 20 steps.")
    ] = _DEFAULTS.image_seconds,
    load_seconds: Annotated[
        float, typer.Option(min=0, help="Above 0 and with several models, one is loaded at a time.")
    ] = _DEFAULTS.load_seconds,
    concurrency: Annotated[int, typer.Option(min=1, help="Slots; the rest waits in order.")] = _DEFAULTS.concurrency,
    vision: Annotated[bool, typer.Option("--vision", help="Take pictures in chats.")] = False,
    context_window: Annotated[int, typer.Option(min=1, help="Tokens.")] = _DEFAULTS.context_window,
    seed: Annotated[int, typer.Option(help="Same seed, same prompt, same answer.")] = _DEFAULTS.seed,
    log: Annotated[Path | None, typer.Option(help="Gets a JSON line for each request.")] = None,
    serve_messages: Annotated[
        bool, typer.Option("--serve-messages", help="Also /v1/messages and /v1/responses.")
    ] = False,
    deaf: Annotated[
        bool, typer.Option("--deaf", help="Finish a non-streaming request whose client left, as llama.cpp does.")
    ] = False,
) -> None:
    """An honest stand-in for a GPU server: it spends time as one does, and answers in its shapes."""
    try:
        options = SimOptions(
            models=tuple(model or _DEFAULTS.models),
            family=family,
            host=host,
            port=port,
            prefill_tokens_per_second=prefill_tokens_per_second,
            decode_tokens_per_second=decode_tokens_per_second,
            image_seconds=image_seconds,
            load_seconds=load_seconds,
            concurrency=concurrency,
            vision=vision,
            context_window=context_window,
            seed=seed,
            log=log,
            serve_messages=serve_messages,
            deaf=deaf,
        )
    except ValueError as error:
        typer.echo(f"turnout sim-backend: {error}", err=True)
        raise typer.Exit(_WRONG_OPTIONS) from error
    try:
        uvloop.run(_serve(options))
    except OSError as error:
        typer.echo(f"turnout sim-backend: {error}", err=True)
        raise typer.Exit(1) from error


async def _serve(options: SimOptions) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with SimBackend(options) as sim:
        typer.echo(f"listening: {sim.url}")
        await stopped.wait()
