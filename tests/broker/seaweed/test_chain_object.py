"""
The bytes of one object of a chain.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.chain.chain_folder import (
    NONCE_BYTES,
    ChainDamaged,
    ChainObject,
    decoded,
    name_of,
    new_nonce,
    number_of,
)

_nonces = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)
_objects = st.builds(
    ChainObject, st.integers(0, (1 << 63) - 1), _nonces, _nonces, st.binary(max_size=200), st.booleans()
)


@given(_objects)
def test_an_object_is_read_as_it_was_written(made: ChainObject) -> None:
    assert decoded(made.encoded(), f"/chain/{made.name}") == made


@given(_objects, st.data())
def test_no_bit_can_be_another(made: ChainObject, data: st.DataObject) -> None:
    """
    A changed bit is noticed.
    """
    damaged = bytearray(made.encoded())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ChainDamaged):
        decoded(bytes(damaged), f"/chain/{made.name}")


@given(_objects, st.data())
def test_nothing_can_be_cut_off_or_zeroed(made: ChainObject, data: st.DataObject) -> None:
    """
    A volume server may do so when its machine loses power.
    """
    whole = made.encoded()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for damaged in (cut, cut + bytes(len(whole) - len(cut)), whole + b"\0"):
        if damaged != whole:
            with pytest.raises(ChainDamaged):
                decoded(damaged, f"/chain/{made.name}")


def test_an_object_is_that_of_its_name() -> None:
    """
    A file that was moved is no object.
    """
    made = ChainObject(7, new_nonce(), new_nonce(), b"payload")
    with pytest.raises(ChainDamaged, match=f"{name_of(8)} has the content of {name_of(7)}"):
        decoded(made.encoded(), f"/chain/{name_of(8)}")


def test_the_form_is_as_it_was() -> None:
    """
    Later versions can read stored objects.
    """
    made = ChainObject(5, bytes(range(16)), bytes(range(16, 32)), b"payload", is_fence=True)
    assert made.encoded().hex() == (
        "78d815f6010100000000000000000005000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f7061796c6f6164"
    )


@pytest.mark.parametrize("number", [0, 7, 10**19])
def test_names_say_numbers(number: int) -> None:
    """
    A name has twenty digits.
    """
    assert len(name_of(number)) == 20
    assert number_of(name_of(number)) == number


@pytest.mark.parametrize("name", ["mark", "7", "0" * 19, "0" * 21, "\u0660" * 20, "0" * 19 + "x"])
def test_other_names_say_none(name: str) -> None:
    """
    Other files are no objects.
    """
    assert number_of(name) is None
