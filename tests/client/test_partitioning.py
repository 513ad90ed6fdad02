"""
Which partition a record goes to.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python

from kgateway.client.partitioning import murmur2, partition_of

# From the tests of Kafka's own Utils.murmur2, which counts in signed numbers.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA.items())
def test_the_hash_is_that_of_java(key: bytes, hashed: int) -> None:
    """
    Bit by bit.
    """
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=70))
def test_the_hash_is_that_of_kafka_python(key: bytes) -> None:
    """
    Whatever the key, of any length.
    """
    assert murmur2(key) == kafka_python(key) & 0xFFFFFFFF


def test_a_key_of_a_negative_hash_has_a_partition() -> None:
    """
    The sign is cut off, as Java's partitioner does it.
    """
    assert partition_of(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
    assert partition_of(b"abc", 1000) == 479470107 % 1000
