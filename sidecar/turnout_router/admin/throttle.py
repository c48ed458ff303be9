"""How often one may try to sign in: for each name, whoever tries, and for each address, whatever it tries. Pure.

Each has a number of tries in hand, and gets one back at a time. A try is taken before the password is looked at, so
that tries side by side count too, and a right password gives it back: whoever knows it is never slowed by himself.
A name is never locked: whoever knows its password waits for one try at most, which bounds what a stranger can do to him.

Names that do not exist count like those that do; both tables are bounded, and the entry nearest to being free goes first.
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

TRIES_OF_A_NAME, NAME_REFILL_S = 10, 30.0
TRIES_OF_AN_ADDRESS, ADDRESS_REFILL_S = 30, 10.0
MAX_TRACKED = 10_000
"""Names, and addresses, that are remembered."""
IPV6_BITS = 64
"""Of an IPv6 address: the rest is any host's own choice."""


@dataclass(slots=True)
class Tries:
    """Tries in hand, by key. A key that is not in the table has all of them."""

    most: int
    refill_s: float
    _full_at: dict[str, float] = field(default_factory=dict)
    """When the key has all its tries again."""

    def take(self, key: str, now: float) -> float:
        """Take one try. 0 = taken, else how many seconds until there is one."""
        full_at = max(self._full_at.get(key, now), now)
        wait = full_at + self.refill_s - now - self.most * self.refill_s
        if wait > 0:
            return wait
        if key not in self._full_at and len(self._full_at) >= MAX_TRACKED:
            self._make_room(now)
        self._full_at[key] = full_at + self.refill_s
        return 0.0

    def give_back(self, key: str) -> None:
        """The try that was just taken does not count."""
        if key in self._full_at:
            self._full_at[key] -= self.refill_s

    def _make_room(self, now: float) -> None:
        self._full_at = {key: at for key, at in self._full_at.items() if at > now}
        if len(self._full_at) >= MAX_TRACKED:
            del self._full_at[min(self._full_at, key=self._full_at.__getitem__)]


@dataclass(slots=True)
class Throttle:
    """Both at once."""

    names: Tries = field(default_factory=lambda: Tries(TRIES_OF_A_NAME, NAME_REFILL_S))
    addresses: Tries = field(default_factory=lambda: Tries(TRIES_OF_AN_ADDRESS, ADDRESS_REFILL_S))

    def take(self, name: str, address: str, now: float) -> float:
        """Take a try. 0 = taken, else how many seconds until there is one."""
        return self.addresses.take(_network(address), now) or self.names.take(name, now)

    def right(self, name: str, address: str) -> None:
        """The password was right."""
        self.names.give_back(name)
        self.addresses.give_back(_network(address))


def _network(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    match found:
        case IPv6Address(ipv4_mapped=IPv4Address() as inner):
            return str(inner)
        case IPv6Address():
            return str(IPv6Address(int(found) >> (128 - IPV6_BITS) << (128 - IPV6_BITS)))
        case _:
            return str(found)
