"""
The table of error codes against two others that were made without us, and the exception that carries a code.
"""

import pickle
import struct
from typing import NamedTuple

import kafka.errors
import kio.schema.errors
import pytest

from kgateway.wire.errors import ErrorCode, KafkaError

# Names that kafka-python kept from older Kafka, or made up.
KAFKA_PYTHON_NAMES = {
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    "NO_ERROR": "NONE",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",  # Kafka's name before 2.6
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "INVALID_REPLICATION_ASSIGNMENT": "INVALID_REPLICA_ASSIGNMENT",
}

# Kafka's clients fetch or send damaged records again; kafka-python gives up on them.
KAFKA_PYTHON_NEVER_RETRIES = {"CORRUPT_MESSAGE"}

# kafka-python 3.0 stops at code 127.
KAFKA_PYTHON_LACKS = {
    "INVALID_REGULAR_EXPRESSION",
    "REBOOTSTRAP_REQUIRED",
    "STREAMS_INVALID_TOPOLOGY",
    "STREAMS_INVALID_TOPOLOGY_EPOCH",
    "STREAMS_TOPOLOGY_FENCED",
    "SHARE_SESSION_LIMIT_REACHED",
}


class Row(NamedTuple):
    number: int
    retriable: bool


def rows() -> dict[str, Row]:
    return {code.name: Row(code, code.retriable) for code in ErrorCode}


def kafka_python_rows() -> dict[str, Row]:
    classes = {number: known for number, known in kafka.errors.kafka_errors.items() if number is not None}
    return {
        KAFKA_PYTHON_NAMES.get(known.message, known.message): Row(number, known.retriable)
        for number, known in classes.items()
    }


def test_agrees_with_kio() -> None:
    """
    The table and kio's have the same names, there in lower case, with the same numbers and retriability.
    """
    theirs = {code.name.upper(): Row(code, code.retriable) for code in kio.schema.errors.ErrorCode}
    assert rows() == theirs


def test_agrees_with_kafka_python() -> None:
    """
    The table has what kafka-python has, but for the differences listed.
    """
    ours, theirs = rows(), kafka_python_rows()
    assert ours.keys() - theirs.keys() == KAFKA_PYTHON_LACKS
    assert theirs.keys() <= ours.keys()
    assert {name for name in theirs if theirs[name].number != ours[name].number} == set()
    assert {name for name in theirs if theirs[name].retriable != ours[name].retriable} == KAFKA_PYTHON_NEVER_RETRIES


def test_each_number_has_one_name() -> None:
    """
    No two rows share a number.
    """
    assert list(ErrorCode.__members__) == [code.name for code in ErrorCode]


def test_numbers_have_no_gap() -> None:
    """
    The rows count up from -1.
    """
    assert list(ErrorCode) == list(range(-1, len(ErrorCode) - 1))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_meaning_is_one_short_line(code: ErrorCode) -> None:
    """
    Each code has a meaning that fits on a line and reads on after a colon.
    """
    assert 0 < len(code.meaning) <= 90
    assert code.meaning == code.meaning.strip()
    assert "\n" not in code.meaning
    assert code.meaning[0].islower()
    assert not code.meaning.endswith(".")


def test_meanings_differ() -> None:
    """
    A meaning tells its code from every other.
    """
    assert len({code.meaning for code in ErrorCode}) == len(ErrorCode)


def test_number_finds_its_code() -> None:
    """
    A number read from the wire looks its code up, and a number Kafka has not given out is refused.
    """
    assert ErrorCode(1) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="not a valid ErrorCode"):
        ErrorCode(len(ErrorCode))


def test_code_is_its_number() -> None:
    """
    A code equals its plain number and is false only when nothing went wrong.
    """
    assert ErrorCode["OFFSET_OUT_OF_RANGE"] == 1
    assert type(ErrorCode.OFFSET_OUT_OF_RANGE.value) is int
    assert [code for code in ErrorCode if not code] == [ErrorCode.NONE]


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_packs_as_i16(code: ErrorCode) -> None:
    """
    Each code packs as a signed 16-bit number and comes back as itself.
    """
    packed = struct.pack(">h", code)
    assert packed == int(code.value).to_bytes(2, "big", signed=True)
    assert ErrorCode(*struct.unpack(">h", packed)) is code


def test_error_says_what_happened() -> None:
    """
    An error reads as the name of its code and the message.
    """
    error = KafkaError(ErrorCode.INVALID_CONFIG, "no setting is called retention")
    assert str(error) == "INVALID_CONFIG: no setting is called retention"
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, "no setting is called retention")


@pytest.mark.parametrize("message", [None, ""])
def test_error_without_message_says_what_its_code_means(message: str | None) -> None:
    """
    An error that has no message reads as the name of its code and the meaning, and keeps the message it was given.
    """
    error = KafkaError(ErrorCode.NON_EMPTY_GROUP, message)
    assert str(error) == "NON_EMPTY_GROUP: the group still has members"
    assert error.message == message


def test_error_can_be_pickled() -> None:
    """
    An error that crosses to another process arrives with its code and message.
    """
    error = pickle.loads(pickle.dumps(KafkaError(ErrorCode.NOT_CONTROLLER, "ask broker 2")))
    assert (error.code, error.message) == (ErrorCode.NOT_CONTROLLER, "ask broker 2")
