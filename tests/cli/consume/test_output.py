"""
Records are written by a format.
"""

from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.cli.consume.output import LINE, SHOWS, check_format, writer
from kgateway.records.record import Header, Record

RECORD = Record(7, 1_795_284_000_000, b"k\xc3\xa4", b"a\tb\xff", (Header("x", b"1"), Header("y", None)))
NULLS = Record(8, -1, None, None)


def written(text: str, record: Record = RECORD, key: str = "text", value: str = "text") -> bytes:
    """
    The bytes of a record in this format.
    """
    return writer(text, SHOWS[key], SHOWS[value])("orders", 3, record)


@pytest.mark.parametrize(
    ("text", "bytes_of_it"),
    [
        (LINE, b"a\tb\xff\n"),
        ("%t-%p@%o %T", b"orders-3@7 1795284000000"),
        ("%k %K %S|%s", b"k\xc3\xa4 3 4|a\tb\xff"),
        ("%R%s", b"\0\0\0\4a\tb\xff"),
        ("%h", b"x=1,y=NULL"),
        (r"100%%\t\\\x00\x7f\r\n", b"100%\t\\\0\x7f\r\n"),
        ("", b""),
        ("ä", "ä".encode()),
    ],
)
def test_a_format(text: str, bytes_of_it: bytes) -> None:
    """
    Fields and escapes have kcat's meaning.
    """
    assert written(text) == bytes_of_it


def test_nulls() -> None:
    """
    Nulls are printed as nothing, with a length of -1.
    """
    assert written("%k|%s|%K|%S|%h", NULLS) == b"||-1|-1|"
    assert written("%R", NULLS) == b"\xff\xff\xff\xff"


def test_as_hex() -> None:
    """
    Keys and values are written in hex independently.
    """
    assert written("%k %s", key="hex", value="text") == b"6bc3a4 a\tb\xff"
    assert written("%k %s", key="text", value="hex") == b"k\xc3\xa4 610962ff"


def test_as_escaped_text() -> None:
    """
    Escaped text is one line without control characters, and null differs from empty.
    """
    assert written("%k %s", key="escaped", value="escaped") == "kä a\\tb\\xff".encode()
    assert written("%s", RECORD._replace(value=b"\x1b[2J\\ \n\xe2\x80\xa8"), value="escaped") == rb"\x1b[2J\\ \n\u2028"
    assert written("%k%s", NULLS, "escaped", "escaped") == b"NULLNULL"


@given(st.binary())
def test_escaped_bytes_are_printable(data: bytes) -> None:
    assert written("%s", RECORD._replace(value=data), value="escaped").decode().isprintable()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%t %z", r"there is no format '%z' (character 4); the formats are %t %p %o %T %k %s %K %S %R %h %%"),
        ("50%", "there is no format '%' (character 3)"),
        (r"%s\q", r"there is no format '\q' (character 3); the formats are \n \r \t \\ \xHH"),
        (r"\x0", r"there is no format '\x' (character 1)"),
        ("%s\\", r"there is no format '\' (character 3)"),
    ],
)
def test_invalid_formats_are_refused(text: str, says: str) -> None:
    """
    The reason has the place of the mistake, and what is allowed.
    """
    with pytest.raises(ArgumentTypeError) as wrong:
        check_format(text)
    assert str(wrong.value).startswith(says)
