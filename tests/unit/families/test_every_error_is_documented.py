"""`docs/api.md` lists every code that a client may get, with its status."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnout_router.families import errors

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")


def leaves(kind: type[errors.GatewayError] = errors.GatewayError) -> Iterator[type[errors.GatewayError]]:
    for below in kind.__subclasses__():
        yield from leaves(below) if below.__subclasses__() else (below,)


# No frontend's rule decides yet, so none denies.
ANSWERED = [kind for kind in leaves() if kind is not errors.Denied]


@pytest.mark.parametrize("kind", ANSWERED, ids=lambda kind: kind.code)
def test_every_error_is_documented(kind: type[errors.GatewayError]) -> None:
    rows = [line for line in PAGE.splitlines() if f"`{kind.code}`" in line and line.startswith("|")]
    assert any(str(kind.status) in row.split("|")[1] for row in rows), f"{kind.status} {kind.code}"
