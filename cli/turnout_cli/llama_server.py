"""`turnout llama-server`: a real llama.cpp server with small weights."""

from typing import Annotated

import typer

from turnout_router.backends.llama_server import LlamaMissing, LlamaServerOptions, serve

_DEFAULTS = LlamaServerOptions()
_NOT_INSTALLED = 2


def llama_server(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 = any free port.")] = _DEFAULTS.port,
    host: Annotated[str, typer.Option(help="Where it listens.")] = _DEFAULTS.host,
    model: Annotated[str, typer.Option(help="A GGUF file, or smollm2: packaged weights.")] = _DEFAULTS.model,
    alias: Annotated[
        str, typer.Option(help="What it calls itself.", show_default="the model's name")
    ] = _DEFAULTS.alias,
    threads: Annotated[int, typer.Option(min=0, help="0 = llama.cpp decides.")] = _DEFAULTS.threads,
    context_window: Annotated[int, typer.Option(min=64, help="Tokens of each slot.")] = _DEFAULTS.context_window,
    parallel: Annotated[int, typer.Option(min=1, help="Slots.")] = _DEFAULTS.parallel,
    embedding: Annotated[bool, typer.Option("--embedding", help="Serve embeddings too.")] = False,
) -> None:
    """A real llama.cpp server; `make llama` installs it."""
    options = LlamaServerOptions(
        port=port,
        host=host,
        model=model,
        alias=alias,
        threads=threads,
        context_window=context_window,
        parallel=parallel,
        embedding=embedding,
    )
    try:
        serve(options, lambda url: typer.echo(f"listening: {url}"))
    except LlamaMissing as error:
        typer.echo(f"turnout llama-server: {error}", err=True)
        raise typer.Exit(_NOT_INSTALLED) from error
