"""
The decoders against damage: every message in every version, cut at every byte, and in more than 100,000 mutations.
"""

import pytest

from kgateway.wire.codec import decode, decoder
from kgateway.wire.headers import RequestHeader, peek
from kgateway.wire.malformed import Malformed
from kgateway.wire.schema import Message
from tests.fuzz.anatomy import Edit, Role, edited, marks
from tests.fuzz.mutations import EXTREMES, mutations, with_unknown_tag
from tests.fuzz.properties import check, refusal
from tests.fuzz.seeds import MESSAGES, seeds

MUTATIONS = 200  # of each seed
every_message = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)


@every_message
def test_seeds_are_messages(message: type[Message]) -> None:
    """
    What the other tests damage is sound.
    """
    assert all(check(seed.message, seed.version, seed.data) for seed in seeds(message))


@every_message
def test_truncated(message: type[Message]) -> None:
    """
    No beginning of a message is a message: what a decoder reads next depends only on what it has read, and it has read
    all there is of a whole one. It says so at a place within what is left.
    """
    for seed in seeds(message):
        for size in range(len(seed.data)):
            refusal(message, seed.version, seed.data[:size])


@every_message
def test_in_a_frame(message: type[Message]) -> None:
    """
    A message decodes from any position, and positions count from where the frame starts.
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
    Damaged bytes are another message, or Malformed, and never anything else.
    """
    done = 0
    for seed in seeds(message):
        for data in mutations(seed, MUTATIONS):
            check(message, seed.version, data)
            done += 1
    assert done == MUTATIONS * 2 * len(message.__spec__.versions)


def test_mutations_are_many() -> None:
    """
    All messages together have at least 100,000 mutations.
    """
    assert sum(MUTATIONS * len(seeds(message)) for message in MESSAGES) >= 100_000


@every_message
def test_lengths_beyond_the_end(message: type[Message]) -> None:
    """
    A length that the rest of the bytes cannot hold is refused as such, at its own field, before anything is read.
    """
    for seed in seeds(message):
        for mark in marks(seed):
            for number in EXTREMES[mark.form]:
                if number < len(seed.data) or mark.role is Role.TAGS:
                    continue
                data = edited(seed, mark, mark.saying(number))
                malformed = refusal(message, seed.version, data)
                inside = mark.path if mark.role is Role.ITEMS else mark.path.rpartition(".")[0] + ".tags"
                assert malformed.place.field == inside.strip("."), str(malformed)
                assert "declared" in malformed.reason or "32 bits" in malformed.reason, str(malformed)


@every_message
def test_null_where_none_may_be(message: type[Message]) -> None:
    """
    A length of null, which any below zero is, is refused at its field, unless the field admits null.
    """
    for seed in seeds(message):
        for mark in marks(seed):
            if mark.role is Role.ITEMS and not mark.nullable:
                for number in (-1, *(n for n in EXTREMES[mark.form] if n < 0)):
                    malformed = refusal(message, seed.version, edited(seed, mark, mark.saying(number)))
                    assert malformed.place.field == mark.path, str(malformed)
                    assert malformed.reason == "null is not allowed here"


@every_message
def test_unknown_tags(message: type[Message]) -> None:
    """
    A tag that is not in the table changes nothing, in whatever tagged section it comes and whatever it contains.
    """
    for seed in seeds(message):
        plain = decode(message, seed.version, seed.data)
        for mark in marks(seed):
            if mark.role is Role.TAGS:
                for content in (b"", b"\xff" * 200):
                    data = with_unknown_tag(seed, mark, content)
                    assert decode(message, seed.version, data) == plain, data.hex()


@every_message
def test_too_many_tags(message: type[Message]) -> None:
    """
    A section that declares more tags than there are bytes is refused.
    """
    for seed in seeds(message):
        for mark in marks(seed):
            if mark.role is Role.TAGS:
                refusal(message, seed.version, edited(seed, mark, mark.saying((1 << 32) - 1)))


@every_message
def test_tags_of_another_size(message: type[Message]) -> None:
    """
    A known tag whose content does not end where its size says is refused at its field.
    """
    for seed in seeds(message):
        for mark in marks(seed):
            if mark.role is Role.TAG_BYTES:
                for data in (
                    edited(seed, mark, mark.saying(mark.number - 1)),
                    edited(seed, mark, mark.saying(mark.number + 1), Edit(mark.stop, mark.stop, b"\0")),
                ):
                    malformed = refusal(message, seed.version, data)
                    assert malformed.place.field == mark.path, str(malformed)
                    assert "should end" in malformed.reason


def test_peek() -> None:
    """
    The first eight bytes of a frame are enough to peek at it, and are needed.
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
