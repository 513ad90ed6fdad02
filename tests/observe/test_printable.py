"""
Text of clients on terminals and in logs.
"""

import pytest

from kgateway.observe.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("«java»: no such file", "«java»: no such file"),
        ("«java»\n\x1b[2J", "«java»\\n\\x1b[2J"),
        ("\u200b\u202e", "\\u200b\\u202e"),
    ],
)
def test_only_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
