"""Embeddings, of a server that was started with them."""

import base64
import math
import struct

import pytest


def test_each_text_gets_a_vector_of_length_one(embedding_server, shape, same_shape):
    body = embedding_server.post("/v1/embeddings", {"input": ["hi", "there"]}).json
    assert [entry["index"] for entry in body["data"]] == [0, 1]
    for entry in body["data"]:
        assert math.hypot(*entry["embedding"]) == pytest.approx(1, abs=1e-3)
    same_shape(embedding_server, body, shape("embeddings"))


def test_a_vector_can_be_had_as_base64_of_floats(embedding_server):
    plain = embedding_server.post("/v1/embeddings", {"input": "hi"}).json["data"][0]["embedding"]
    packed = embedding_server.post("/v1/embeddings", {"input": "hi", "encoding_format": "base64"}).json
    raw = base64.b64decode(packed["data"][0]["embedding"])
    assert struct.unpack(f"<{len(plain)}f", raw) == pytest.approx(plain, abs=1e-4)
