"""A round writes the state first and stops when that is refused; what one object is refused does not hold up the others."""

from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from turnout_operator import rounds as rounds_module
from turnout_operator.api import ApiError, WritesRefused
from turnout_operator.picture import Reached
from turnout_operator.readings import Said
from turnout_operator.rounds import Rounds
from turnout_operator.state import Issued, Kept, StateError


class Api:
    """Gives a namespace's objects, notes what is written, and refuses what a test says."""

    def __init__(self, objects) -> None:
        self.declared = objects
        self.unreadable = self.too_small = False
        self.kept = Kept()
        self.version = "1"
        """Of the state; empty = there is none."""
        self.written: list[str] = []
        self.read: list[list[str]] = []
        """Of which nodes Secrets were read."""
        self.statuses = {}
        self.on_status = lambda: None
        self.refuses: dict[str, int] = {}

    async def read_state(self, _namespace):
        if self.unreadable:
            raise StateError("it cannot be read")
        return self.kept, self.version

    async def objects(self, _namespace):
        return self.declared

    async def router_secrets(self, _namespace, nodes):
        self.read.append(nodes)
        return {}

    async def with_previous(self, _namespace, references):
        assert references == ({("token", "token")} if self.declared else set())
        return set()

    async def children(self, _namespace, _names, *, roles):
        assert not roles
        return {}

    async def pods(self, _namespace):
        return []

    async def delete_child(self, _namespace, key):
        self._note(f"delete {key}")

    async def apply_child(self, manifest):
        self._note(f"{manifest['kind']} {manifest['metadata']['name']}")

    async def write_state(self, _namespace, _kept, version):
        assert version == "1"
        if self.too_small:
            raise StateError("it cannot be kept")
        self._note("state")

    async def apply_secret(self, manifest):
        self._note(manifest["metadata"]["name"])

    async def apply_status(self, _namespace, write):
        self.statuses[write.key.name] = write.body
        self.on_status()
        self._note(f"status {write.key.name}")

    async def create_event(self, event):
        self._note(f"event {event['regarding']['name']}")

    def _note(self, what: str) -> None:
        if status := self.refuses.get(what):
            raise ApiError(status, f"{what} is refused")
        self.written.append(what)


class Nudger:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.news: dict[str, Reached] = {}

    async def tell(self, _namespace, routers) -> None:
        self.told += [told.node.name for told in routers]
        self.news |= {told.url: Reached(told.config.generation) for told in routers if self.answers}

    def reached(self, _namespace):
        return dict(self.news)

    answers = False


@pytest.fixture
def api(namespace):
    return Api(list(namespace.objects.values()))


@pytest.fixture
def nudger():
    return Nudger()


MASTER_URL = "http://master:8900"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""Nothing is remembered here, so another second would be another generation."""
SECRETS = ["turnout-router-gpu-a", "turnout-router-gpu-b", "turnout-router-master"]
STATUSES = ["status master", "status gpu-a", "status gpu-b"]


async def test_state_then_secrets_then_statuses(api, nudger):
    assert await Rounds(api, nudger).run("test") == 7

    assert api.written == ["state", *SECRETS, *STATUSES]
    assert sorted(nudger.told) == ["gpu-a", "gpu-b", "master"]


async def test_nothing_is_delivered_that_could_not_be_remembered(api, nudger):
    api.refuses["state"] = 409

    with pytest.raises(ApiError, match="state is refused"):
        await Rounds(api, nudger).run("test")

    assert (api.written, nudger.told) == ([], [])


@pytest.mark.parametrize("trouble", ["unreadable", "too_small"])
async def test_what_cannot_be_read_or_kept_is_said_and_nothing_else_is_done(api, nudger, trouble):
    setattr(api, trouble, True)

    with pytest.raises(StateError, match="it cannot be"):
        await Rounds(api, nudger).run("test")

    assert sorted(api.written) == sorted([*STATUSES, *(line.replace("status", "event") for line in STATUSES)])
    assert nudger.told == []
    [accepted] = api.statuses["gpu-a"]["status"]["conditions"]
    assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "Unknown", "NotRemembered")


async def test_one_refused_object_does_not_hold_up_the_others(api, nudger):
    api.refuses |= {SECRETS[0]: 403, STATUSES[0]: 422}

    with pytest.raises(ApiError, match="2 writes failed, the first with 403"):
        await Rounds(api, nudger).run("test")

    assert api.written == ["state", *SECRETS[1:], *STATUSES[1:]]
    assert len(nudger.told) == 3


async def test_statuses_say_what_was_refused_until_it_is_not(api, nudger):
    rounds = Rounds(api, nudger)
    for refused, reason in ((422, "Refused"), (503, None), (None, None)):
        api.refuses = {SECRETS[0]: refused} if refused else {}
        with nullcontext() if refused is None else pytest.raises(WritesRefused):
            await rounds.run("test")

        conditions = {c["type"]: c["reason"] for c in api.statuses["gpu-a"]["status"]["conditions"]}
        assert conditions.get("Programmed") == reason


async def test_an_event_follows_its_status_and_does_not_without_it(api, nudger, namespace, specs):
    for name in ("gpu-a", "gpu-b"):
        namespace.put("RouterNode", name, specs.slave(name, family="Whisper"))
    api = Api(list(namespace.objects.values()))
    api.refuses["status gpu-a"] = 500

    with pytest.raises(ApiError):
        await Rounds(api, nudger).run("test")

    assert api.written[-2:] == ["status gpu-b", "event gpu-b"]
    assert "event gpu-a" not in api.written


async def test_objects_of_a_node_come_after_its_secret_and_before_statuses(namespace, nudger, specs):
    for name in ("gpu-a", "gpu-b"):
        spec = specs.slave(name)
        del spec["publicURL"]
        namespace.put("RouterNode", name, spec)
    api = Api(list(namespace.objects.values()))

    await Rounds(api, nudger).run("test")

    assert api.written == ["state", *SECRETS, "Service gpu-a", "Service gpu-b", *STATUSES]


async def test_statuses_say_what_came_of_telling_and_are_written_once(api, nudger):
    nudger.answers = True

    await Rounds(api, nudger).run("test")

    assert api.written == ["state", *SECRETS, *STATUSES]
    conditions = {c["type"]: c["status"] for c in api.statuses["gpu-a"]["status"]["conditions"]}
    assert conditions["Programmed"] == "True"


class Reader:
    """A master that is told runs what it was told from then on; before, it said that it runs an older one."""

    def __init__(self) -> None:
        self.said = {MASTER_URL: Said("master", generation=1, suspended={})}
        self.met: list[list[str]] = []

    def follow(self, _namespace, _routers) -> None:
        self.said = {MASTER_URL: Said("master", generation=None, suspended={})}

    async def meet(self, _namespace, reached) -> None:
        self.met.append(sorted(reached))

    def readings(self, _namespace):
        return self.said


async def test_what_a_router_said_before_it_was_told_is_not_said_of_it_after(api, nudger):
    nudger.answers, reader = True, Reader()

    await Rounds(api, nudger, reader=reader).run("test")

    conditions = {c["type"]: c["reason"] for c in api.statuses["master"]["status"]["conditions"]}
    assert conditions["Programmed"] == "Programmed"
    assert reader.met == [["http://gpu-a:8900", "http://gpu-b:8900", MASTER_URL]]


async def test_secrets_of_routers_are_read_once_in_an_interval(namespace, nudger):
    api, now = Api(list(namespace.objects.values())), [0.0]
    rounds = Rounds(api, nudger, reread_s=60.0, clock=lambda: now[0], now=lambda: NOW)

    await rounds.run("test")
    now[0] = 59.0
    await rounds.run("test")
    assert api.read == [["master", "gpu-a", "gpu-b"], []]
    assert [name for name in api.written if name in SECRETS] == SECRETS

    now[0] = 60.0
    await rounds.run("test")
    assert api.read[2] == ["master", "gpu-a", "gpu-b"]
    assert [name for name in api.written if name in SECRETS] == [*SECRETS, *SECRETS], "somebody deleted them meanwhile"


async def test_a_secret_that_was_refused_is_written_again(api, nudger):
    rounds = Rounds(api, nudger, reread_s=60.0, now=lambda: NOW)
    api.refuses[SECRETS[0]] = 403
    with pytest.raises(ApiError):
        await rounds.run("test")
    api.refuses.clear()

    await rounds.run("test")

    assert api.written.count(SECRETS[0]) == 1
    assert api.written.count(SECRETS[1]) == 1


async def test_a_change_does_not_wait_for_statuses(namespace, nudger, monkeypatch):
    monkeypatch.setattr(rounds_module, "_SAID_AT_ONCE", 1)
    api, now = Api(list(namespace.objects.values())), [0.0]
    changed = [False]
    rounds = Rounds(api, nudger, clock=lambda: now[0], pressing=lambda _namespace: changed[0])
    api.on_status = lambda: (now.__setitem__(0, 5.0), changed.__setitem__(0, True))

    assert await rounds.run("test") == 5

    assert [name for name in api.written if name in STATUSES] == STATUSES[:1]


class Follower:
    def __init__(self) -> None:
        self.follows: list[str] = []

    def follow(self, _namespace, routers) -> None:
        self.follows = [told.node.name for told in routers]

    async def meet(self, _namespace, _reached) -> None:
        pass

    def readings(self, _namespace):
        return {}


async def test_routers_of_a_namespace_that_went_with_all_that_was_in_it_are_asked_no_more(api, nudger):
    reader = Follower()
    rounds = Rounds(api, nudger, reader=reader)
    await rounds.run("test")
    assert sorted(reader.follows) == ["gpu-a", "gpu-b", "master"]

    api.version = ""
    api.declared.clear()

    assert await rounds.run("test") is None
    assert reader.follows == []


async def test_a_namespace_in_which_nothing_is_declared_any_more_says_so_once_nothing_is_left_to_be_done(api, nudger):
    rounds = Rounds(api, nudger, now=lambda: NOW)
    assert await rounds.run("test") == 7
    api.declared.clear()
    assert await rounds.run("test") is None, "what is remembered is as it was"

    api.kept = Kept(routers={"gone": Issued(7, "sha256:0")})
    assert await rounds.run("test") == 1, "what is remembered is brought up to date"
