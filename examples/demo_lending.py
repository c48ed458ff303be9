"""`make demo`, second part: what a busy GPU cannot start, an idle one serves.

`turnout up examples/lending.yaml`: gpu-a and gpu-b hold one checkpoint, and may lend each other what waits. A few requests
let their speeds be measured. Then ten requests for gpu-a's model come at once, and a little later one for gpu-b's own. All of
it runs twice, with the links and, after an edit of the manifest that takes them away, without. Every time is measured at the
client; why something was lent or not is read from the decision log. Exit code 1 when a request was not served.

The GPUs are stand-ins: two servers on one CPU would slow each other down, which two GPUs do not.
"""

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import aiohttp
import yaml
from demo import READY_S, STATE_FOLDER, cluster, console, seconds
from rich.table import Table

from turnout_api.lending import DecisionRow, Outcome, Reason
from turnout_cli.reporting.databases import of_state

EXAMPLE = Path(__file__).parent / "lending.yaml"
OWNER, HELPER = "cc11-ff", "cc11"
TEN = [24, 32, 40, 48, 24, 32, 40, 48, 24, 32]
"""Tokens that each of the ten requests asks for: 0.6 to 1.2 s of gpu-a."""
OWN_AFTER_S, OWN_TOKENS = 0.5, 32
WARM_UP = [8, 16, 24, 32, 40]
"""As many as `schedulingMinSamples` of the example, of several sizes."""
EDIT_S = 30.0
SKIPPED = {
    Reason.HELPER_NOT_ACCEPTING: "it had work of its own, which goes first",
    Reason.COST_REJECTED: "it would not have been done before {owner} had finished everything itself",
    Reason.HELPER_CLAIMED: "another owner had more use for it",
}


@dataclass(frozen=True)
class Served:
    """One request, from its client's side."""

    status: int
    node: str
    seconds: float


@dataclass(frozen=True)
class Scene:
    """Ten requests for gpu-a's model, and one for gpu-b's."""

    ten: list[Served]
    own: Served

    @property
    def total_s(self) -> float:
        """Until the last of the ten was answered."""
        return max(one.seconds for one in self.ten)

    @property
    def mean_s(self) -> float:
        return mean(one.seconds for one in self.ten)

    @property
    def ok(self) -> bool:
        return all(one.status == 200 for one in [*self.ten, self.own])


async def main() -> int:
    """Run the scene twice; the exit code."""
    console.print("\n[bold]lending:[/bold]  turnout up examples/lending.yaml (GPUs: sim-backend, a stand-in)")
    with tempfile.TemporaryDirectory(prefix="turnout-demo-") as folder:
        manifest, state = Path(folder, EXAMPLE.name), Path(folder, STATE_FOLDER)
        shutil.copy(EXAMPLE, manifest)
        async with cluster(manifest, state) as url:
            key = json.loads((state / "credentials.json").read_text())["gatewayKey"]
            timeout = aiohttp.ClientTimeout(total=READY_S)
            async with aiohttp.ClientSession(
                url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout
            ) as session:
                await asyncio.gather(warm_up(session, OWNER), warm_up(session, HELPER))
                console.print(f"sending ten chats to {OWNER} at once, and one to {HELPER}: with links …")
                linked = await scene(session)
                take_links_away(manifest)
                await until_applied(state.with_suffix(".log"))
                console.print("… and without …\n")
                alone = await scene(session)
        rows = sorted(of_state(state, since=0.0).rows, key=lambda row: row.ts)
    show(alone, linked)
    for line in in_words(rows):
        console.print(f"[dim]·[/dim] {line}", highlight=False)
    return 0 if alone.ok and linked.ok else 1


async def warm_up(session: aiohttp.ClientSession, model: str) -> None:
    """One request after another, so that nothing waits and nothing is lent."""
    for tokens in WARM_UP:
        await ask(session, model, tokens)


async def scene(session: aiohttp.ClientSession) -> Scene:
    """Send the eleven requests."""
    ten = [asyncio.create_task(ask(session, OWNER, tokens)) for tokens in TEN]
    await asyncio.sleep(OWN_AFTER_S)
    own = await ask(session, HELPER, OWN_TOKENS)
    return Scene(await asyncio.gather(*ten), own)


async def ask(session: aiohttp.ClientSession, model: str, tokens: int) -> Served:
    """Send one chat; who computed the answer, and after how long it was there."""
    body = {"model": model, "messages": [{"role": "user", "content": "What is a turnout?"}], "max_tokens": tokens}
    began = time.perf_counter()
    async with session.post("/v1/chat/completions", json=body) as response:
        await response.read()
        headers = response.headers
        node = headers.get("x-turnout-lent-to", headers.get("x-turnout-node", ""))
        return Served(response.status, node, time.perf_counter() - began)


def take_links_away(manifest: Path) -> None:
    """Save the manifest without its links."""
    documents = [one for one in yaml.safe_load_all(manifest.read_text()) if one["kind"] != "RoutingLink"]
    manifest.write_text(yaml.safe_dump_all(documents))


async def until_applied(said: Path) -> None:
    """Wait until `turnout up` has said that it serves an edit."""
    async with asyncio.timeout(EDIT_S):
        while not has_applied(said):  # noqa: ASYNC110  what another process writes is no event
            await asyncio.sleep(0.05)


def has_applied(said: Path) -> bool:
    return "applied as generation" in said.read_text()


def show(alone: Scene, linked: Scene) -> None:
    """The ten requests side by side, and what lending saved and cost."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", "without links", "after", "with links", "after"):
        table.add_column(head, justify="right" if head == "after" else "left", no_wrap=True)
    for number, (before, now) in enumerate(zip(alone.ten, linked.ten, strict=True), 1):
        table.add_row(str(number), named(before), seconds(before.seconds), named(now), seconds(now.seconds))
    table.add_row("mean", "", seconds(alone.mean_s), "", seconds(linked.mean_s))
    table.add_row("all", "", seconds(alone.total_s), "", seconds(linked.total_s), style="bold")
    console.print(table)
    console.print(
        f"\n[bold]lending saved[/bold] {seconds(alone.total_s - linked.total_s)} until all ten were answered, and "
        f"{seconds(alone.mean_s - linked.mean_s)} of a request's mean {seconds(alone.mean_s)}; it cost gpu-b's own request "
        f"{seconds(linked.own.seconds - alone.own.seconds)}\n",
        highlight=False,
    )


def named(one: Served) -> str:
    """Who served it."""
    if one.status != 200:
        return f"[red]HTTP {one.status}[/red]"
    return f"[green]{one.node}[/green]" if one.node == "gpu-b" else one.node


def in_words(rows: Iterable[DecisionRow]) -> list[str]:
    """The first decision of each kind, told to a person."""
    told = {row.outcome: told_of(row) for row in reversed(list(rows)) if told_of(row)}
    return [told[outcome] for outcome in Outcome if outcome in told]


def told_of(row: DecisionRow) -> str:
    """One row; empty = it is not worth telling here."""
    match row.outcome:
        case Outcome.GRANTED:
            return (
                f"[bold]{row.helper_node} may help[/bold]: {row.owner_node} alone needed {row.owner_drain_s:.1f} s for its "
                f"{row.backlog} requests; {row.helper_node} would hand the first back after {price(row):.1f} s "
                f"({row.borrowed_s:.1f} borrowed already + {row.switch_s:.1f} loading + {row.service_s:.1f} work), "
                f"so {row.slots} at once"
            )
        case Outcome.SKIPPED:
            why = SKIPPED.get(Reason(row.reason), "").format(owner=row.owner_node)
            return f"[bold]{row.helper_node} was passed over[/bold] ({row.reason})" + (f": {why}" if why else "")
        case Outcome.NATIVE_WAITED_BEHIND_BORROWED:
            return (
                f"[bold]{row.helper_node}'s own request waited[/bold] {seconds(row.waited_s)} for a slot at its backend, "
                f"where {row.borrowed_in_backend} borrowed ones were"
            )
        case _:
            return ""


def price(row: DecisionRow) -> float:
    """What the owner's drain was compared with."""
    return sum(part or 0.0 for part in (row.borrowed_s, row.switch_s, row.restore_s, row.service_s))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
