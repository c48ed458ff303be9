"""A picture and a sound: real files, small, the same for the same prompt."""

import struct
import zlib
from random import Random

_SAMPLE_RATE = 8000
_BYTES_PER_TOKEN = _SAMPLE_RATE // 10


def png(random: Random, width: int, height: int) -> bytes:
    """Stripes in two colours: one bit a pixel keeps a megapixel under a kilobyte."""
    palette = random.randbytes(6)
    row = b"\x00" + bytes([random.randrange(256)]) * (-(-width // 8))
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(row * height, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def wav(random: Random, tokens: int) -> bytes:
    """A tenth of a second of 8-bit noise for each token."""
    samples = random.randbytes(_BYTES_PER_TOKEN) * max(1, tokens)
    form = struct.pack("<HHIIHH", 1, 1, _SAMPLE_RATE, _SAMPLE_RATE, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body
