"""A load generator is not let loose on another machine by a slip of the keyboard."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from turnout_cli.main import app_for
from turnout_cli.replay import is_loopback
from turnout_cli.replaying.sender import GatewayUnusable

TRACE = Path(__file__).parents[2] / "data" / "traces" / "azure-2023-conversation-200.csv"


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8900", True),
        ("http://[::1]:8900/v1", True),
        ("http://localhost", True),
        ("http://10.0.0.1:8900", False),
        ("http://gateway.example", False),
        ("http://127.0.0.1.example.com", False),
        ("http://127.0.0.1@example.com", False),
    ],
)
def test_which_urls_are_this_machine(url: str, here: bool) -> None:
    assert is_loopback(url) is here


@pytest.mark.parametrize("url", ["127.0.0.1:8900", "ftp://localhost", ""])
def test_what_is_no_url_of_a_gateway_is_refused(url: str) -> None:
    with pytest.raises(GatewayUnusable, match="no URL"):
        is_loopback(url)


def test_another_machine_is_refused_before_anything_is_sent() -> None:
    arguments = ["replay", str(TRACE), "--url", "http://gateway.example", "--key", "k"]
    result = CliRunner().invoke(app_for(arguments), arguments)
    assert result.exit_code == 2
    assert "--allow-remote" in result.output
