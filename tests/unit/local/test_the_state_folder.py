"""What a cluster keeps between runs, and who may use it."""

import json
import stat
from pathlib import Path

import pytest
import yaml
from argon2 import PasswordHasher

from turnout_cli.local.state import State, StateError, StateFolder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_credentials_are_made_once_and_only_their_owner_reads_them(root: Path) -> None:
    folder = StateFolder.open(root)
    first = folder.credentials()
    assert folder.credentials() == first
    files = [folder.folders.credentials, folder.folders.token, folder.folders.gateway_key, folder.folders.users]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    written = json.loads(folder.folders.credentials.read_text())
    assert folder.folders.gateway_key.read_text().strip() == written["gatewayKey"]
    assert folder.folders.token.read_text().strip() == written["clusterToken"]
    folder.close()


def test_the_admins_password_is_kept_as_argon2id(root: Path) -> None:
    folder = StateFolder.open(root)
    admin = folder.credentials().admin
    (user,) = yaml.safe_load(folder.folders.users.read_text())["users"]
    assert user["passwordHash"].startswith("$argon2id$")
    assert PasswordHasher().verify(user["passwordHash"], admin.password)
    before = folder.folders.users.read_text()
    folder.credentials()
    assert folder.folders.users.read_text() == before
    folder.close()


def test_a_key_that_a_person_changed_is_the_key(root: Path) -> None:
    folder = StateFolder.open(root)
    folder.credentials()
    path = folder.folders.credentials
    path.write_text(path.read_text().replace(folder.credentials().gateway_key, "sk-of-my-own-0123456789"))
    folder.credentials()
    assert folder.folders.gateway_key.read_text() == "sk-of-my-own-0123456789\n"
    folder.close()


def test_clients_are_for_people_to_write(root: Path) -> None:
    folder = StateFolder.open(root)
    folder.credentials()
    path = folder.folders.clients
    assert yaml.safe_load(path.read_text()) == {"clients": []}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("clients: [{name: ann}]\n")
    folder.credentials()
    assert path.read_text() == "clients: [{name: ann}]\n"
    folder.close()


def test_one_process_has_it_at_a_time(root: Path) -> None:
    first = StateFolder.open(root)
    with pytest.raises(StateError, match="--state"):
        StateFolder.open(root)
    first.close()
    StateFolder.open(root).close()


def test_what_is_kept_comes_back(root: Path) -> None:
    folder = StateFolder.open(root)
    assert folder.state() == State()
    kept = State(generation=7, gateway_port=8900, ledger={"m": ["x", "y"]})
    folder.keep(kept)
    assert folder.state() == kept
    folder.close()


@pytest.mark.parametrize("name", ["state", "credentials"])
def test_a_damaged_file_is_named(root: Path, name: str) -> None:
    folder = StateFolder.open(root)
    path = getattr(folder.folders, name)
    path.write_text("{")
    with pytest.raises(StateError, match=str(path)):
        getattr(folder, name)()
    folder.close()


def test_a_key_that_cannot_be_used_is_not_shown(root: Path) -> None:
    folder = StateFolder.open(root)
    folder.credentials()
    path = folder.folders.credentials
    path.write_text(path.read_text().replace(folder.credentials().gateway_key, "s3cret"))
    with pytest.raises(StateError, match=r"gatewayKey: .* at least 16") as refused:
        folder.credentials()
    assert "s3cret" not in str(refused.value)
    folder.close()


def test_a_folder_that_holds_secrets_is_not_committed_by_accident(root: Path) -> None:
    StateFolder.open(root).close()
    assert (root / ".gitignore").read_text() == "*\n"


def test_a_folder_that_was_replaced_is_not_written(tmp_path: Path) -> None:
    folder = StateFolder.open(tmp_path / "state")
    (tmp_path / "state").rename(tmp_path / "removed")
    (tmp_path / "state").mkdir()
    with pytest.raises(StateError, match="was removed or replaced"):
        folder.keep(State())
    assert list((tmp_path / "state").iterdir()) == []
    folder.close()
