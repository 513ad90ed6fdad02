"""
Numbers with their nouns.
"""

import pytest

from kgateway.plurals import counted


@pytest.mark.parametrize(
    ("number", "noun", "plural", "form", "shown"),
    [
        (0, "member", "", "", "0 members"),
        (1, "member", "", "", "1 member"),
        (2, "member", "", "", "2 members"),
        (1, "batch", "batches", "", "1 batch"),
        (2, "batch", "batches", "", "2 batches"),
        (12_345, "record", "", ",", "12,345 records"),
    ],
)
def test_the_noun_has_the_form_of_the_number(number: int, noun: str, plural: str, form: str, shown: str) -> None:
    assert counted(number, noun, plural, form=form) == shown
