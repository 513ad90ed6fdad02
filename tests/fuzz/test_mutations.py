"""
The decoders against damage: every message in every version, truncated at every byte, and with more than 100,000
mutations.
"""

from collections.abc import Iterator

import pytest

from kgateway.wire.codec import decode, decoder
from kgateway.wire.errors import Malformed
from kgateway.wire.headers import RequestHeader, peek
from kgateway.wire.schema import Message
from tests.fuzz.anatomy import Edit, Form, Mark, Role, edited, marks, tagged
from tests.fuzz.mutations import EXTREMES, mutations, with_tag
from tests.fuzz.properties import check, refusal
from tests.fuzz.seeds import MESSAGES, Seed, seeds

MUTATIONS = 200  # of each seed
every_message = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)


def _marked(message: type[Message], *roles: Role) -> Iterator[tuple[Seed, Mark]]:
    return ((seed, mark) for seed in seeds(message) for mark in marks(seed) if mark.role in roles)


@every_message
def test_seeds_are_valid(message: type[Message]) -> None:
    assert all(check(seed.message, seed.version, seed.data) for seed in seeds(message))


@every_message
def test_seeds_have_every_tag(message: type[Message]) -> None:
    """
    Each tagged field of a version is in its full seed.
    """
    for seed in seeds(message)[::2]:
        sent = {mark.path for mark in marks(seed) if mark.role is Role.TAG_BYTES}
        assert sent == set(tagged(message, seed.version))


@every_message
def test_truncated(message: type[Message]) -> None:
    """
    No proper prefix of a message is a message: what a decoder reads next depends only on what it has read, and it
    reads all of a message. The failure has a position within the prefix.
    """
    for seed in seeds(message):
        for size in range(len(seed.data)):
            refusal(message, seed.version, seed.data[:size])


@every_message
def test_trailing_bytes(message: type[Message]) -> None:
    """
    A message with a byte behind it is refused at its end.
    """
    for seed in seeds(message):
        malformed = refusal(message, seed.version, seed.data + b"\0")
        assert (malformed.field.path, malformed.position) == ("the end", len(seed.data))


@every_message
def test_in_a_frame(message: type[Message]) -> None:
    """
    A message decodes from any position, and positions count from the start of the frame.
    """
    for seed in seeds(message):
        frame = b"\xff" * 9 + seed.data
        expected = decode(message, seed.version, seed.data), len(frame)
        assert decoder(message, seed.version)(frame, 9) == expected
        if seed.data:
            with pytest.raises(Malformed) as alone:
                decode(message, seed.version, seed.data[:-1])
            with pytest.raises(Malformed) as framed:
                decoder(message, seed.version)(frame[:-1], 9)
            assert framed.value.position == 9 + alone.value.position


@every_message
def test_mutated(message: type[Message]) -> None:
    """
    Damaged bytes are another message or raise Malformed, and nothing else.
    """
    done = 0
    for seed in seeds(message):
        for data in mutations(seed, MUTATIONS):
            check(message, seed.version, data)
            done += 1
    assert done == MUTATIONS * 2 * len(message.__spec__.versions)


def test_mutations_are_many() -> None:
    """
    There are at least 100,000 mutations of all messages.
    """
    assert sum(MUTATIONS * len(seeds(message)) for message in MESSAGES) >= 100_000


@every_message
def test_lengths_beyond_the_end(message: type[Message]) -> None:
    """
    A length beyond the end of the bytes is refused at its own field, before anything is read.
    """
    for seed, mark in _marked(message, Role.ITEMS, Role.TAG_BYTES):
        place = mark.path if mark.role is Role.ITEMS else f"{mark.path.rpartition('.')[0]}.tags".strip(".")
        for number in EXTREMES[mark.form]:
            if number > len(seed.data):
                malformed = refusal(message, seed.version, edited(seed, mark, mark.saying(number)))
                assert malformed.field.path == place, str(malformed)
                assert "declared" in malformed.reason or "32 bits" in malformed.reason, str(malformed)


@every_message
def test_lengths_in_too_many_bytes(message: type[Message]) -> None:
    """
    A varint may have up to five bytes, even more than it needs, but not six.
    """
    for seed, mark in _marked(message, *Role):
        if mark.form not in (Form.INT16, Form.INT32):
            five, six = (edited(seed, mark, _padded(mark, size)) for size in (5, 6))
            assert decode(message, seed.version, five) == decode(message, seed.version, seed.data)
            assert "beyond 32 bits" in refusal(message, seed.version, six).reason


def _padded(mark: Mark, size: int) -> Edit:
    """
    The number of a mark in more bytes than needed.
    """
    needed = bytes(byte | 0x80 for byte in mark.form.written(mark.number))
    return Edit(mark.start, mark.end, needed.ljust(size - 1, b"\x80") + b"\0")


@every_message
def test_null_in_fields_that_are_not_nullable(message: type[Message]) -> None:
    """
    A negative length means null, and is refused at its field unless that is nullable.
    """
    for seed, mark in _marked(message, Role.ITEMS):
        if not mark.nullable:
            for number in (-1, *(n for n in EXTREMES[mark.form] if n < 0)):
                malformed = refusal(message, seed.version, edited(seed, mark, mark.saying(number)))
                assert malformed.field.path == mark.path, str(malformed)
                assert malformed.reason == "null is not allowed here"


@every_message
def test_unknown_tags(message: type[Message]) -> None:
    """
    An unknown tag changes nothing, in any tagged section and with any content.
    """
    for seed, mark in _marked(message, Role.TAGS):
        plain = decode(message, seed.version, seed.data)
        for content in (b"", b"\xff" * 200):
            data = with_tag(seed, mark, content)
            assert decode(message, seed.version, data) == plain, data.hex()


@every_message
def test_too_many_tags(message: type[Message]) -> None:
    """
    A section that declares more tags than there are bytes is refused.
    """
    for seed, mark in _marked(message, Role.TAGS):
        refusal(message, seed.version, edited(seed, mark, mark.saying((1 << 32) - 1)))


@every_message
def test_tags_of_another_size(message: type[Message]) -> None:
    """
    A known tag whose content does not end at its size is refused at its field.
    """
    for seed, mark in _marked(message, Role.TAG_BYTES):
        shorter = edited(seed, mark, mark.saying(mark.number - 1))
        longer = edited(seed, mark, mark.saying(mark.number + 1), Edit(mark.stop, mark.stop, b"\0"))
        for data in (shorter, longer):
            malformed = refusal(message, seed.version, data)
            assert malformed.field.path == mark.path, str(malformed)
            assert "should end" in malformed.reason


def test_peek() -> None:
    """
    Peeking takes the first eight bytes of a frame, and no fewer.
    """
    for seed in seeds(RequestHeader):
        header = decode(RequestHeader, seed.version, seed.data)
        for size in range(len(seed.data) + 1):
            frame = seed.data[:size]
            if size < 8:
                with pytest.raises(Malformed) as caught:
                    peek(frame)
                assert caught.value.position == size
            else:
                assert peek(frame) == (header.request_api_key, header.request_api_version, header.correlation_id)
