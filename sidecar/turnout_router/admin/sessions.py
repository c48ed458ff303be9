"""Who is signed in. Pure: the caller gives the token and `now`, monotonic seconds.

A session is known by the SHA-256 of its token alone, so a dump of the memory holds none that works. It lives in the
memory of one router: a restart signs everybody out. It ends when it was not used for `IDLE_S`, `ABSOLUTE_S` after it
began however much it was used, and when the password that opened it is no longer that person's.
"""

from dataclasses import dataclass
from hashlib import sha256

IDLE_S = 30 * 60.0
ABSOLUTE_S = 12 * 3600.0
MAX_SESSIONS = 1000
"""Of everybody; the one that was idle longest makes room."""
MAX_SESSIONS_OF_ONE = 20
"""Of one person; likewise."""
TOKEN_BYTES = 32


@dataclass(slots=True)
class Session:
    """One person on one device."""

    name: str
    password: str
    """The hash of the password that opened it."""
    began_at: float
    used_at: float

    def ends_at(self) -> float:
        """When it ends if it is not used again."""
        return min(self.used_at + IDLE_S, self.began_at + ABSOLUTE_S)


class Sessions:
    """All sessions of one router."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, token: str, name: str, password: str, now: float) -> Session:
        """Begin one; `token` is a secret that nobody had before."""
        self._forget_ended(now)
        self._make_room([key for key, s in self._sessions.items() if s.name == name], MAX_SESSIONS_OF_ONE)
        self._make_room(list(self._sessions), MAX_SESSIONS)
        session = self._sessions[_key(token)] = Session(name, password, now, now)
        return session

    def find(self, token: str, now: float) -> Session | None:
        """The session of a token, which this use prolongs; None = there is none, or it has ended."""
        session = self._sessions.get(_key(token))
        if session is None:
            return None
        if now >= session.ends_at():
            self.close(token)
            return None
        session.used_at = now
        return session

    def close(self, token: str) -> None:
        """End one, if there is one."""
        self._sessions.pop(_key(token), None)

    def _forget_ended(self, now: float) -> None:
        self._sessions = {key: s for key, s in self._sessions.items() if now < s.ends_at()}

    def _make_room(self, keys: list[bytes], most: int) -> None:
        by_use = sorted(keys, key=lambda key: self._sessions[key].used_at)
        for key in by_use[: max(0, len(keys) - most + 1)]:
            del self._sessions[key]


def _key(token: str) -> bytes:
    # a lookup by digest takes the same time for every wrong token: where it misses depends on the hash alone
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
