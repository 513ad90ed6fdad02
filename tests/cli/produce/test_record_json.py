"""
Records as lines of JSON.
"""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.cli.produce.record_json import RecordFields, json_line, record_in
from kgateway.records.record import Header, Record

_bytes = st.none() | st.binary() | st.text().map(str.encode)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
_keys = st.binary().map(lambda data: data.decode(errors="surrogateescape"))


@given(_bytes, _bytes, st.lists(st.builds(Header, _keys, _bytes)), st.integers(0, (1 << 63) - 1))
def test_output_of_consume_can_be_produced(
    key: bytes | None, value: bytes | None, headers: list[Header], timestamp: int
) -> None:
    """
    Each line is ASCII, and gives the same bytes again.
    """
    line = json_line("orders", 3, Record(7, timestamp, key, value, tuple(headers)))
    assert line.isascii()
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert record_in(line) == RecordFields(key, value, tuple(headers), 3, timestamp)


def exactly(value: bytes, key: bytes | None = None) -> RecordFields:
    """
    A record with this key and value.
    """
    return RecordFields(key, value, (), None, None)


@given(_json.filter(lambda value: not isinstance(value, str | None)), _json, st.sampled_from(["", " ", "\t\r "]))
def test_json_is_sent_as_it_is_written(value: object, key: object, space: str) -> None:
    """
    Whitespace around the value does not matter.
    """
    wanted = json.dumps(value, ensure_ascii=False)
    told = f'{{{space}"key"{space}:{json.dumps(key)}{space},{space}"value":{space}{wanted}{space}}}{space}'
    assert record_in(told.encode()).value == wanted.encode()


def test_a_record_without_a_time() -> None:
    """
    Its timestamp is null.
    """
    assert json.loads(json_line("t", 0, Record(1, -1, None, None)))["timestamp"] is None


def test_bytes_are_flagged() -> None:
    """
    The flag is in the same object.
    """
    line = json_line("t", 0, Record(1, 2, b"k", b"\xff", (Header("a", b"1"), Header("b", b"\xfe"))))
    assert json.loads(line) == {
        "topic": "t",
        "partition": 0,
        "offset": 1,
        "timestamp": 2,
        "key": "k",
        "value": "/w==",
        "base64": ["value"],
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": "/g==", "base64": ["value"]}],
    }


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (b"{}", RecordFields(None, None, (), None, None)),
        (b'{"value": ""}', RecordFields(None, b"", (), None, None)),
        (b'{"headers": {"a": "1", "b": null}}', RecordFields(None, None, (("a", b"1"), ("b", None)), None, None)),
        (b'{"key": 7, "value": {"a": [1, 2]}}', RecordFields(b"7", b'{"a": [1, 2]}', (), None, None)),
        (b'{ "value" :12345678901234567890.10 , "key":{"v": "}"}}', exactly(b"12345678901234567890.10", b'{"v": "}"}')),
        (b'{"key": 1e2, "value": "v"}', RecordFields(b"1e2", b"v", (), None, None)),
        (b'{"va\\u006cue": {"a": 1, "a": 2.50}}', exactly(b'{"a": 1, "a": 2.50}')),
        (b'{"value": [' + b"9" * 5000 + b"]}", exactly(b"[" + b"9" * 5000 + b"]")),
        ('{"value": ["ä", "\\ud800"]}'.encode(), exactly('["ä", "\\ud800"]'.encode())),
    ],
)
def test_lines_written_by_hand(line: bytes, written: RecordFields) -> None:
    """
    The servers choose what is left out, and JSON values are sent as written.
    """
    assert record_in(line) == written


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "this is not JSON at character 1"),
        (b'{"key": }', "this is not JSON at character 9"),
        (b"\xff", "this is not JSON"),
        (b"[" * 100_000, "this is not JSON"),
        (b"[1]", 'a record is an object such as {"key": "a", "value": "b"}'),
        (
            b'{"kee": "a"}',
            "a record has no field 'kee'; its fields are base64, headers, key, partition, timestamp, value",
        ),
        (b'{"partition": -1}', "'partition' is a whole number from 0 to 2147483647, not -1"),
        (b'{"partition": true}', "'partition' is a whole number from 0 to 2147483647, not true"),
        (b'{"timestamp": "now"}', "'timestamp' is a whole number from 0 to 9223372036854775807, not \"now\""),
        (b'{"headers": "a"}', "'headers' is a list or an object, not \"a\""),
        (b'{"headers": [1]}', 'a header is an object such as {"key": "a", "value": "b"}, not 1'),
        (b'{"value": "a", "base64": ["value"]}', "'value' is not base64, although `base64` names it"),
        (b'{"value": 1, "base64": ["value"]}', "'value' is a string, not 1"),
        (b'{"value": "\\ud800"}', "'value' has half of a surrogate pair"),
        (b'{"headers": {"\\ud800": ""}}', "'key' has half of a surrogate pair"),
        (b'{"value": 1, "value": 2}', "the record has the same name twice"),
        (b'{"headers": {"a": "1", "a": "2"}}', "'headers', which may be a list, has the same name twice"),
        (b'{"headers": [{"key": "a", "key": "b"}]}', "a header has the same name twice"),
        (b'{"value": [NaN]}', "this is not JSON: it does not have NaN"),
        (b'{"value": -Infinity}', "this is not JSON: it does not have -Infinity"),
        (b'{"value": {"a": 1e400}}', "1e400 is too large for a number"),
        (b'{"timestamp": 1' + b"0" * 5000 + b"}", "'timestamp' is a whole number from 0 to 9223372036854775807"),
        (b'{"headers": {"a": 1}}', "'value' is a string, not 1"),
        (b'{"value": "a", "base64": "value"}', '"base64" is a list such as ["value"], not "value"'),
    ],
)
def test_invalid_records_are_refused(line: bytes, says: str) -> None:
    """
    The reason is in words.
    """
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        record_in(line)
