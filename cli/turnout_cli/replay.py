"""`turnout replay`: a public trace against a gateway, every request accounted for.

Exit codes: 0 = every row was answered exactly once, 1 = not so, 2 = the replay could not begin.
"""

import asyncio
import ipaddress
import secrets
import sys
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import urlsplit

import orjson
import typer
from rich.console import Console
from rich.progress import Progress

from turnout_cli.output import Output, print_document, table_console
from turnout_cli.replaying.account import Account, Entry
from turnout_cli.replaying.sender import Clock, GatewayUnusable, Replay, Sending, open_session, served_models
from turnout_cli.replaying.summary import Summary, render, summarise
from turnout_cli.replaying.trace import TraceError, TraceRow, read_trace

LEAD_S = 0.1
"""Between the start of the run and the time of its first row."""


def replay(
    *,
    trace: Annotated[Path, typer.Argument(help="Azure's CSV or Mooncake's JSON lines.")],
    url: Annotated[str, typer.Option(help="Base URL of the gateway.")],
    key: Annotated[str, typer.Option(help="API key.", envvar="TURNOUT_KEY")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name to ask for; several take turns.", show_default="the only one that is served"),
    ] = None,
    time_scale: Annotated[float, typer.Option(min=1e-6, help="10 = ten times as fast as the trace.")] = 1.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same texts, same streams.")] = 0,
    stream_share: Annotated[float, typer.Option(min=0, max=1, help="Share of requests that ask for a stream.")] = 0.5,
    prompt_scale: Annotated[
        float, typer.Option(min=1e-6, help="Shorter prompts, for a small context window: 0.1 = a tenth.")
    ] = 1.0,
    max_tokens_scale: Annotated[float, typer.Option(min=1e-6, help="Shorter answers: 0.1 = a tenth.")] = 1.0,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Answers of exactly the trace's length (llama.cpp, vLLM).")
    ] = False,
    max_open: Annotated[
        int, typer.Option(min=1, max=20_000, help="Requests open at once; others are sent late.")
    ] = 256,
    log: Annotated[Path | None, typer.Option(help="Gets a JSON line for each row.")] = None,
    output: Annotated[Output, typer.Option(case_sensitive=False, help="table is for people.")] = Output.TABLE,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Really send this load to another machine.")
    ] = False,
) -> None:
    """Replay a trace against a gateway and account for every request. Exit 1 if one was not answered exactly once."""
    base = url.rstrip("/").removesuffix("/v1")
    sending = Sending(
        url=base,
        key=key,
        models=tuple(model or ()),
        seed=seed,
        stream_share=stream_share,
        prompt_scale=prompt_scale,
        max_tokens_scale=max_tokens_scale,
        max_open=max_open,
        ignore_eos=ignore_eos,
    )
    try:
        if not allow_remote:
            _refuse_remote(base)
        rows = read_trace(trace, limit)
        with ExitStack() as stack:
            writer = stack.enter_context(log.open("wb", buffering=0)) if log else None
            summary = asyncio.run(_run(rows, sending, time_scale, writer))
    except (TraceError, GatewayUnusable, OSError) as error:
        typer.echo(f"turnout replay: {error}", err=True)
        raise typer.Exit(2) from error
    _show(summary, output, f"{trace.name}: {len(rows)} rows, {time_scale:g} times as fast")
    raise typer.Exit(0 if summary.good else 1)


def _refuse_remote(url: str) -> None:
    if not is_loopback(url):
        raise GatewayUnusable(f"{url} is another machine: --allow-remote says that it may get this load")


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine. Raises GatewayUnusable for one that is no http URL."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise GatewayUnusable(f"{url!r} is no URL of a gateway: write for example http://127.0.0.1:8900")
    if parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return False


async def _run(rows: list[TraceRow], sending: Sending, time_scale: float, log: BinaryIO | None) -> Summary:
    async with open_session(sending.key) as session:
        if not sending.models:
            sending = replace(sending, models=_the_only(await served_models(session, sending.url)))
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
            task = progress.add_task("replaying", total=len(rows))

            def closed(entry: Entry) -> None:
                if log:
                    log.write(orjson.dumps(asdict(entry), option=orjson.OPT_APPEND_NEWLINE))
                progress.advance(task)

            clock = Clock()
            account = Account(
                rows, run=secrets.token_hex(4), start=clock.now() + LEAD_S, time_scale=time_scale, on_closed=closed
            )
            run = Replay(session, sending, account, clock.now)
            try:
                await run.run(rows)
            except asyncio.CancelledError:  # Ctrl-C: what is still open is said to be so
                typer.echo("turnout replay: stopped", err=True)
            account.close_rest(clock.now())
    return summarise(account.entries, most_open=run.most_open)


def _the_only(models: list[str]) -> tuple[str, ...]:
    if len(models) != 1:
        served = ", ".join(models) or "nothing"
        raise GatewayUnusable(f"the gateway serves {served}: choose with --model")
    return tuple(models)


def _show(summary: Summary, output: Output, title: str) -> None:
    match output:
        case Output.TABLE:
            table_console().print(render(summary, title), highlight=False)
        case Output.JSON | Output.YAML:
            print_document(summary.document(), output)
