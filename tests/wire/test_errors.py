"""
The table of error codes compared with two independent ones, and the exception that carries a code.
"""

import pickle
import struct
from typing import NamedTuple

import kafka.errors
import kio.schema.errors
import pytest

from kgateway.wire.errors import ErrorCode, KafkaError

# Names that kafka-python kept from older Kafka versions, or made up.
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

# kafka-python 3.0 ends at code 127.
KAFKA_PYTHON_LACKS = {
    "INVALID_REGULAR_EXPRESSION",
    "REBOOTSTRAP_REQUIRED",
    "STREAMS_INVALID_TOPOLOGY",
    "STREAMS_INVALID_TOPOLOGY_EPOCH",
    "STREAMS_TOPOLOGY_FENCED",
    "SHARE_SESSION_LIMIT_REACHED",
}


class CodeRow(NamedTuple):
    number: int
    retriable: bool


def rows() -> dict[str, CodeRow]:
    return {code.name: CodeRow(code, code.retriable) for code in ErrorCode}


def kafka_python_rows() -> dict[str, CodeRow]:
    classes = {number: known for number, known in kafka.errors.kafka_errors.items() if number is not None}
    return {
        KAFKA_PYTHON_NAMES.get(known.message, known.message): CodeRow(number, known.retriable)
        for number, known in classes.items()
    }


def test_codes_agree_with_kio() -> None:
    """
    Both have the same names, there in lower case, with the same numbers and retriability.
    """
    theirs = {code.name.upper(): CodeRow(code, code.retriable) for code in kio.schema.errors.ErrorCode}
    assert rows() == theirs


def test_codes_agree_with_kafka_python() -> None:
    """
    Differences are listed above.
    """
    ours, theirs = rows(), kafka_python_rows()
    assert ours.keys() - theirs.keys() == KAFKA_PYTHON_LACKS
    assert theirs.keys() <= ours.keys()
    assert {name for name in theirs if theirs[name].number != ours[name].number} == set()
    assert {name for name in theirs if theirs[name].retriable != ours[name].retriable} == KAFKA_PYTHON_NEVER_RETRIES


def test_numbers_are_unique() -> None:
    assert list(ErrorCode.__members__) == [code.name for code in ErrorCode]


def test_numbers_have_no_gap() -> None:
    """
    They count up from -1.
    """
    assert list(ErrorCode) == list(range(-1, len(ErrorCode) - 1))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_meanings_are_one_short_line(code: ErrorCode) -> None:
    """
    Each fits on a line and can follow a colon.
    """
    assert 0 < len(code.meaning) <= 90
    assert code.meaning == code.meaning.strip()
    assert "\n" not in code.meaning
    assert code.meaning[0].islower()
    assert not code.meaning.endswith(".")


def test_meanings_differ() -> None:
    assert len({code.meaning for code in ErrorCode}) == len(ErrorCode)


def test_numbers_are_looked_up() -> None:
    """
    A number that Kafka does not use is refused.
    """
    assert ErrorCode(1) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="not a valid ErrorCode"):
        ErrorCode(len(ErrorCode))


def test_a_code_equals_its_number() -> None:
    """
    It is false only if there is no error.
    """
    assert ErrorCode["OFFSET_OUT_OF_RANGE"] == 1
    assert type(ErrorCode.OFFSET_OUT_OF_RANGE.value) is int
    assert [code for code in ErrorCode if not code] == [ErrorCode.NONE]


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_codes_pack_as_i16(code: ErrorCode) -> None:
    """
    Each is unpacked as itself.
    """
    packed = struct.pack(">h", code)
    assert packed == int(code.value).to_bytes(2, "big", signed=True)
    assert ErrorCode(*struct.unpack(">h", packed)) is code


def test_errors_show_code_and_message() -> None:
    error = KafkaError(ErrorCode.INVALID_CONFIG, "no setting is called retention")
    assert str(error) == "INVALID_CONFIG: no setting is called retention"
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, "no setting is called retention")


@pytest.mark.parametrize("message", [None, ""])
def test_errors_without_a_message_show_the_meaning(message: str | None) -> None:
    """
    Their message is still the original one.
    """
    error = KafkaError(ErrorCode.NON_EMPTY_GROUP, message)
    assert str(error) == "NON_EMPTY_GROUP: the group still has members"
    assert error.message == message


def test_errors_can_be_pickled() -> None:
    """
    Another process gets code and message.
    """
    error = pickle.loads(pickle.dumps(KafkaError(ErrorCode.NOT_CONTROLLER, "ask broker 2")))
    assert (error.code, error.message) == (ErrorCode.NOT_CONTROLLER, "ask broker 2")
