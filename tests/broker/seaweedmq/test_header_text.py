"""
Headers as text.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.formats.record import headers_of, headers_text
from kgateway.records.record import Header

_KEYS = st.text() | st.binary().map(lambda data: data.decode(errors="surrogateescape"))
_KEPT = _KEYS.filter(lambda key: not any(0xD800 <= ord(letter) < 0xDC80 for letter in key))


def test_words() -> None:
    """
    The text is readable.
    """
    headers = [Header("h", b"1"), Header("none", None), Header("b", b"\xff\x00"), Header("h", "µ\n".encode())]
    assert headers_text(headers) == '[["h", "1"], ["none", null], ["b", {"base64": "/wA="}], ["h", "µ\\n"]]'


@given(st.lists(st.builds(Header, _KEPT, st.none() | st.binary() | st.text().map(str.encode)), max_size=4))
def test_they_come_back(headers: list[Header]) -> None:
    """
    Headers in UTF-8 are restored.
    """
    text = headers_text(headers)
    assert headers_of(text.encode().decode()) == tuple(headers)


_DEEP = "[" * 100_000
_PAIRS = (
    '["h"]',
    '[["h"]]',
    '[[1, "v"]]',
    '[["h", 1]]',
    '[["h", {}]]',
    '[["h", {"base64": "?"}]]',
    '[["h", "\\ud800"]]',
)


@pytest.mark.parametrize("text", ["", "{}x", "3", _DEEP, *_PAIRS], ids=range(4 + len(_PAIRS)))
def test_other_texts(text: str) -> None:
    """
    Other texts are refused, and named.
    """
    with pytest.raises(ValueError, match="does not describe headers"):
        headers_of(text)
