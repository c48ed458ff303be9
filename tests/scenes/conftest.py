"""Scenes: each is played unchanged on the deciding code alone, on routers in one process, and on those of `turnout up`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from staging.in_process import InProcessStage
from staging.pure import PureStage
from staging.stage import Stage
from staging.up import UpStage


@pytest.fixture(params=["pure", "in_process", "up"])
async def stage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    """An empty stage."""
    here: Stage
    match request.param:
        case "pure":
            here = PureStage()
        case "in_process":
            here = InProcessStage(tmp_path, monkeypatch)
        case _:
            here = UpStage(tmp_path)
    try:
        yield here
        if here.setting.nodes:
            print(await here.tell())
    finally:
        if here.setting.nodes:  # else it was not opened
            await here.close()
