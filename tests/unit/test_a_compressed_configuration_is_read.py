"""A configuration that was too large for its Secret stands compressed beside where it would be."""

import gzip
from pathlib import Path

import pytest

from turnout_router.main import read_config
from turnout_router.startable import RouterRefused

TEXT = b"generation: 7\ncluster: {role: Standalone, node_id: alone}\n"


def test_it_is_read_where_the_plain_one_is_missing(tmp_path: Path) -> None:
    (tmp_path / "router.yaml.gz").write_bytes(gzip.compress(TEXT))

    assert read_config(tmp_path / "router.yaml").generation == 7


def test_the_plain_one_is_read_where_both_are_there(tmp_path: Path) -> None:
    (tmp_path / "router.yaml.gz").write_bytes(gzip.compress(TEXT))
    (tmp_path / "router.yaml").write_bytes(TEXT.replace(b"7", b"8"))

    assert read_config(tmp_path / "router.yaml").generation == 8


@pytest.mark.parametrize(
    "damaged",
    [b"no gzip", gzip.compress(TEXT)[:20], b"\x1f\x8b\x08"],
    ids=["other bytes", "broken off", "a first line"],  # the second has the time of day in it: workers would differ
)
def test_a_damaged_one_is_refused_by_name(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "router.yaml.gz").write_bytes(damaged)

    with pytest.raises(RouterRefused, match=r"router\.yaml cannot be read"):
        read_config(tmp_path / "router.yaml")


def test_a_missing_one_is_told_under_its_plain_name(tmp_path: Path) -> None:
    with pytest.raises(RouterRefused, match=r"router\.yaml cannot be read: .*No such file"):
        read_config(tmp_path / "router.yaml")
