"""
Kafka's UUIDs.
"""

import pytest

from kgateway.wire.uuids import ONE, ZERO, Uuid


def test_text_is_that_of_kafka() -> None:
    """
    It is URL-safe base64 of sixteen bytes, without padding.
    """
    assert str(ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(Uuid(b"\xff" * 16)) == "_____________________w"
    assert repr(ONE) == "Uuid.parse('AAAAAAAAAAAAAAAAAAAAAQ')"


def test_text_round_trips() -> None:
    for _ in range(100):
        drawn = Uuid.random()
        assert Uuid.parse(str(drawn)) == drawn
        assert len(drawn) == 16


@pytest.mark.parametrize("raw", [b"", b"abc", bytes(15), bytes(17)])
def test_other_lengths_are_refused(raw: bytes) -> None:
    """
    They are not padded or truncated when sent.
    """
    with pytest.raises(ValueError, match=f"a UUID has 16 bytes, not {len(raw)}"):
        Uuid(raw)


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 22 + "==", "é" * 22])
def test_other_text_is_refused(text: str) -> None:
    """
    The error names text that is not 22 letters of base64.
    """
    with pytest.raises(ValueError, match="not a Kafka UUID"):
        Uuid.parse(text)


def test_random_ids_are_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Ids with a leading dash, and those reserved by Kafka, are drawn again.
    """
    draws = iter([b"\xf8" + bytes(15), bytes(16), bytes(ONE), b"k" * 16])
    monkeypatch.setattr("kgateway.wire.uuids.token_bytes", lambda size: next(draws))
    assert Uuid.random() == b"k" * 16
