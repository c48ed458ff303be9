"""A request is recorded by each router on its way; a simulation of several logs sends it once, when it came first."""

from pathlib import Path

from turnout_cli.simulating.recorded import read_logs
from turnout_router.store.database import Store
from turnout_router.store.records import RequestRecord

Came = tuple[str, float, str, str, float]
"""ID, when, node, model, how long it took."""


async def recorded(tmp_path: Path, **logs: list[Came]) -> list[tuple[float, str]]:
    for router, rows in logs.items():
        store = Store.open(str(tmp_path / router))
        for request_id, ts, node, model, took_s in rows:
            record = RequestRecord(request_id, ts, "/v1/chat/completions", node=node, local_id=model)
            record.status, record.outcome, record.total_s, record.bytes_in, record.bytes_out = (
                200,
                "ok",
                took_s,
                80,
                508,
            )
            store.add_request(record)
        await store.close()
    arrivals = read_logs([tmp_path / router / "router.db" for router in logs])
    return sorted((round(arrival.at_s, 6), arrival.target.node) for arrival in arrivals)


async def test_a_request_is_its_masters_also_where_it_was_lent(tmp_path: Path):
    came = await recorded(
        tmp_path,
        helper=[("r1", 100.02, "gpu-b", "helper", 1.9), ("r2", 103.0, "gpu-b", "helper", 1.0)],
        master=[("r1", 100.0, "gpu-a", "owner", 2.0), ("r2", 102.99, "gpu-b", "helper", 1.1)],
        owner=[("r1", 100.01, "gpu-a", "owner", 1.95)],
    )
    assert came == [(0.0, "gpu-a"), (2.99, "gpu-b")]


async def test_requests_of_one_log_that_share_an_id_all_come(tmp_path: Path):
    came = await recorded(
        tmp_path,
        master=[("same", 100.0, "a", "m", 5.0), ("same", 101.0, "a", "m", 5.0), ("same", 900.0, "a", "m", 5.0)],
    )
    assert [at_s for at_s, _ in came] == [0.0, 1.0, 800.0]


async def test_an_id_that_another_log_has_of_another_day_is_another_request(tmp_path: Path):
    came = await recorded(tmp_path, one=[("r1", 100.0, "a", "m", 5.0)], other=[("r1", 86_500.0, "b", "m", 5.0)])
    assert came == [(0.0, "a"), (86_400.0, "b")]
