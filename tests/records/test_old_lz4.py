"""
The header checksum of lz4 frames.
"""

import lz4.frame
import pytest

from kgateway.records.compression import Codec, compress, decompress
from kgateway.records.old_lz4 import broken, mended

_FLAGS = [{"store_size": size, "content_checksum": check} for size in (False, True) for check in (False, True)]


@pytest.mark.parametrize("options", _FLAGS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 5, 100_000])
def test_mended_frames_are_those_of_the_library(options: dict[str, bool], size: int) -> None:
    """
    Its own frames are valid already, and are valid again after they were broken.
    """
    frame = lz4.frame.compress(b"x" * size, **options)
    assert mended(frame) == frame
    assert mended(broken(frame)) == frame


def test_broken_frames_are_those_of_kafka() -> None:
    """
    The frame that Kafka's producer makes for magic 0, observed with kafka-clients 0.10.2.2, differs only in the
    checksum, which the library refuses.
    """
    frame = compress(Codec.LZ4, b"value")
    made = broken(frame)
    assert (frame[:7].hex(), made[:7].hex()) == ("04224d18604082", "04224d1860401a")
    assert made[7:] == frame[7:]
    with pytest.raises(ValueError, match="lz4"):
        decompress(Codec.LZ4, made, 100)


@pytest.mark.parametrize("size", [0, 1, 4, 5, 6])
def test_short_data_is_unchanged(size: int) -> None:
    """
    It ends before the checksum.
    """
    data = compress(Codec.LZ4, b"value")[:size]
    assert mended(data) == data
