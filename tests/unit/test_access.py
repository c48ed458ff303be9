"""Tokens and keys: whatever a header holds, the answer is yes or no."""

from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from turnout_api.config import AccessConfig, ClusterConfig
from turnout_api.vocabulary import Role
from turnout_router.access import AccessError, ApiKeys, ClusterTokens, load_cluster_tokens
from turnout_router.allowances import KeyLimits

GOOD = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Bearer caf\udce9"],
        [f"Basic {GOOD}"],
        [GOOD],
        [f"Bearer {GOOD}", f"Bearer {GOOD}"],
        ["Bearer " + "x" * 8192],
        [f"Bearer {GOOD}x"],
    ],
)
def test_a_wrong_authorization_is_a_no_and_no_exception(values: list[str]) -> None:
    assert not ClusterTokens(GOOD).accepts(values)


def test_two_tokens_are_valid_at_once_while_one_is_rotated_out() -> None:
    tokens = ClusterTokens(GOOD, "previous-previous")
    assert tokens.accepts([f"Bearer {GOOD}"])
    assert tokens.accepts(["bearer previous-previous"])


@pytest.mark.parametrize(
    "text", ["", "  \n", "changeme", "please-CHANGE-ME-now-please", "<put the token here>", "short"]
)
def test_a_token_that_is_empty_short_or_a_placeholder_is_refused_at_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(AccessError, match=str(path)):
        load_cluster_tokens(ClusterConfig(role=Role.MASTER, node_id="m", token_file=str(path)))


@pytest.mark.parametrize("role", [Role.MASTER, Role.SLAVE])
def test_a_cluster_role_without_a_token_file_is_refused(role: Role) -> None:
    with pytest.raises(AccessError, match="token_file"):
        load_cluster_tokens(ClusterConfig(role=role, node_id="m"))


def test_clients_are_known_by_the_hash_of_their_key(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    digest = sha256(b"my-key").hexdigest()
    path.write_text(f"clients:\n- {{name: ann, keySha256: {digest}, roles: [dev], models: [m]}}\n")
    caller = ApiKeys.of(AccessConfig(clients_file=str(path))).caller(["Bearer my-key"])
    assert caller is not None
    assert (caller.name, caller.roles, caller.models) == ("ann", {"dev"}, {"m"})


def test_an_api_key_counts_only_without_an_authorization(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(GOOD)
    keys = ApiKeys.of(AccessConfig(gateway_key_file=str(path)))
    assert keys.caller([], [GOOD]) is not None
    assert keys.caller(["Basic bad"], [GOOD]) is None


def test_a_key_may_have_limits(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    limits = "requestsPerMinute: 3, tokensPerMinute: 1000, budgetMicrosPerDay: 5"
    path.write_text(f"clients:\n- {{name: ann, keySha256: {sha256(b'ann-key').hexdigest()}, {limits}}}\n")
    caller = ApiKeys.of(AccessConfig(clients_file=str(path))).caller(["Bearer ann-key"])
    assert caller is not None
    assert caller.limits == KeyLimits(3, 1000, 5)


def test_a_clients_file_with_a_field_that_is_not_enforced_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    path.write_text(f"clients:\n- {{name: ann, keySha256: {'0' * 64}, requestsPerHour: 3}}\n")
    with pytest.raises(AccessError, match="requestsPerHour"):
        ApiKeys.of(AccessConfig(clients_file=str(path)))


@pytest.mark.parametrize("name", ["gateway", "master"])
def test_a_client_called_as_the_routers_own_callers_are_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "clients.yaml"
    path.write_text(yaml.safe_dump({"clients": [{"name": name, "keySha256": sha256(b"my-key").hexdigest()}]}))
    with pytest.raises(AccessError, match=f"'{name}' is the router's own name in records"):
        ApiKeys.of(AccessConfig(clients_file=str(path)))


def test_one_key_is_of_one_client_only_and_never_the_gateways(tmp_path: Path) -> None:
    path, gateway = tmp_path / "clients.yaml", tmp_path / "key"
    gateway.write_text("gateway-0123456789abcdef")
    ann = {"name": "ann", "keySha256": sha256(b"my-key").hexdigest()}
    path.write_text(yaml.safe_dump({"clients": [ann, ann | {"name": "bob"}]}))
    with pytest.raises(AccessError, match="'bob' and 'ann' have the same key"):
        ApiKeys.of(AccessConfig(clients_file=str(path)))

    path.write_text(yaml.safe_dump({"clients": [ann | {"keySha256": sha256(gateway.read_bytes()).hexdigest()}]}))
    with pytest.raises(AccessError, match="'ann' and 'gateway' have the same key"):
        ApiKeys.of(AccessConfig(clients_file=str(path), gateway_key_file=str(gateway)))


def test_a_gateway_that_nobody_could_call_is_refused() -> None:
    with pytest.raises(AccessError, match="gateway_key_file"):
        ApiKeys.of(AccessConfig())


def test_keys_are_read_again_when_their_file_changes_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    access = AccessConfig(clients_file=str(path))

    def write(key: bytes) -> None:
        path.unlink(missing_ok=True)  # as a mounted Secret is replaced
        path.write_text(f"clients:\n- {{name: ann, keySha256: {sha256(key).hexdigest()}}}\n")

    write(b"first")
    keys = ApiKeys.of(access)
    write(b"second")
    keys.follow(access)
    assert keys.caller(["Bearer first"]) is None
    assert keys.caller(["Bearer second"]) is not None
    path.write_text("clients: [")
    keys.follow(access)
    assert keys.caller(["Bearer second"]) is not None
