"""Texts of the sizes that a trace gives; the same seed, the same texts.

A trace carries no text. A word here is three letters and a space: one token of every tokenizer in use, and four bytes,
which is what an estimate from bytes counts as one token too. Rows that share blocks share the text of those blocks, so
that a server's prefix cache finds what the real traffic let it find; a row without blocks shares nothing.
"""

from functools import lru_cache
from hashlib import blake2b
from random import Random

from turnout_cli.replaying.trace import BLOCK_TOKENS, TraceRow

_STOCK = """
act add age air all and any arm art ask bad bag bar bed big bit box boy bus but buy can car cat cup cut day dog dry
eat egg end eye far few fly for fun gas get god guy hat her him his hot how ice its job key kid law lay let lie lot
low man map may men new not now off oil old one our out own pay put ran red run say sea see set she sir sit six sky
"""
_WORDS = _STOCK.split()
_CACHED_BLOCKS = 4096


def prompt(row: TraceRow, *, seed: int, scale: float = 1.0) -> str:
    """About `row.prompt_tokens * scale` tokens. Blocks shrink and grow with `scale`, so what was shared still is."""
    wanted = scaled(row.prompt_tokens, scale)
    pieces = [_block(seed, f"block {block}", scaled(BLOCK_TOKENS, scale)) for block in row.blocks]
    have = len(pieces) * scaled(BLOCK_TOKENS, scale)
    if have < wanted:
        pieces.append(_piece(seed, f"row {row.number}", wanted - have))
    return "".join(pieces)[: 4 * wanted].rstrip()


def streams(row: TraceRow, *, seed: int, share: float) -> bool:
    """Whether this row asks for a stream: `share` of all rows do."""
    return _random(seed, f"stream {row.number}").random() < share


def scaled(tokens: int, scale: float) -> int:
    """At least one token."""
    return max(1, round(tokens * scale))


@lru_cache(maxsize=_CACHED_BLOCKS)
def _block(seed: int, name: str, words: int) -> str:
    return _piece(seed, name, words)


def _piece(seed: int, name: str, words: int) -> str:
    return " ".join(_random(seed, name).choices(_WORDS, k=words)) + " "


def _random(seed: int, name: str) -> Random:
    digest = blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()
    return Random(int.from_bytes(digest))  # noqa: S311 - filler text, nothing secret
