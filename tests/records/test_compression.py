"""
The codecs: round trips, agreement with other libraries, damage and malice.
"""

import gzip
import time
from collections.abc import Callable

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec as kafka_python

from kgateway.records.compression import Codec, check_level, compress, decompress
from tests.records.bombs import CAN_MEASURE, LIMIT, OUTPUT, growth

ROOM = 1 << 20
TEXT = b"".join(b"line %d of a text that is worth compressing\n" % n for n in range(5000))
COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=300) | st.sampled_from([TEXT, TEXT[:32768], TEXT[:32769], bytes(1 << 18)]))
def test_data_round_trips(codec: Codec, data: bytes) -> None:
    """
    Data is compressed from any kind of buffer.
    """
    compressed = compress(codec, data)
    assert decompress(codec, compressed, ROOM) == data
    assert compress(codec, memoryview(b"_" + data)[1:]) == compress(codec, bytearray(data)) == compressed
    assert decompress(codec, memoryview(b"_" + compressed)[1:], ROOM) == data
    assert decompress(codec, bytearray(compressed), ROOM) == data


OTHERS: dict[Codec, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    Codec.GZIP: (kafka_python.gzip_encode, kafka_python.gzip_decode),
    Codec.SNAPPY: (kafka_python.snappy_encode, kafka_python.snappy_decode),
    Codec.LZ4: (kafka_python.lz4_encode, kafka_python.lz4_decode),
    Codec.ZSTD: (kafka_python.zstd_encode, kafka_python.zstd_decode),
}


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("data", [b"", b"short", TEXT], ids=["empty", "short", "long"])
def test_kafka_python_agrees(codec: Codec, data: bytes) -> None:
    """
    Each reads what the other compresses.
    """
    encode, decode = OTHERS[codec]
    assert decompress(codec, encode(data), ROOM) == data
    if data or codec is not Codec.SNAPPY:  # it takes a stream without blocks for a bare block
        assert decode(compress(codec, data)) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        *((Codec.GZIP, level) for level in (-1, 1, 9)),
        *((Codec.LZ4, level) for level in (1, 2, 9, 12, 17)),
        *((Codec.ZSTD, level) for level in (-131072, -1, 0, 3, 22)),
    ],
)
def test_kafkas_levels_are_accepted(codec: Codec, level: int) -> None:
    """
    A codec accepts every level that Kafka's configuration accepts.
    """
    assert decompress(codec, compress(codec, TEXT, level), ROOM) == TEXT


@pytest.mark.parametrize(
    ("codec", "level", "reason"),
    [
        (Codec.GZIP, 0, "gzip has levels 1 to 9, not 0"),
        (Codec.GZIP, 10, "gzip has levels 1 to 9, not 10"),
        (Codec.LZ4, 0, "lz4 has levels 1 to 17, not 0"),
        (Codec.LZ4, 18, "lz4 has levels 1 to 17, not 18"),
        (Codec.ZSTD, -131073, "zstd has levels -131072 to 22, not -131073"),
        (Codec.ZSTD, 23, "zstd has levels -131072 to 22, not 23"),
        (Codec.SNAPPY, 1, "snappy has no levels"),
        (Codec.NONE, 0, "none has no levels"),
    ],
)
def test_other_levels_are_refused(codec: Codec, level: int, reason: str) -> None:
    """
    The error names the level and its range.
    """
    for use in (lambda: check_level(codec, level), lambda: compress(codec, TEXT, level)):
        with pytest.raises(ValueError, match=f"^{reason}$"):
            use()


@pytest.mark.parametrize(
    ("codec", "fast", "dense"), [(Codec.GZIP, 1, 9), (Codec.LZ4, None, 1), (Codec.LZ4, None, 12), (Codec.ZSTD, -9, 19)]
)
def test_levels_make_a_difference(codec: Codec, fast: int | None, dense: int) -> None:
    """
    A denser level gives fewer bytes; the default of lz4 is the fast one, as in Kafka.
    """
    assert len(compress(codec, TEXT, dense)) < len(compress(codec, TEXT, fast))
    assert compress(Codec.LZ4, TEXT, 9) == compress(Codec.LZ4, TEXT)


def test_lz4_has_kafkas_framing() -> None:
    """
    Frames have independent blocks of 64 KiB, because Kafka reads no others, and no checksum or content size.
    """
    frame = compress(Codec.LZ4, TEXT)
    assert frame[:7] == bytes.fromhex("04224d18604082")
    assert lz4.frame.get_frame_info(frame)["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB


def test_snappy_has_javas_framing() -> None:
    """
    A stream has xerial's header, then blocks of 32 KiB behind their sizes.
    """
    stream = compress(Codec.SNAPPY, TEXT)
    first = snappy.compress(TEXT[: 1 << 15])
    assert stream[:20] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + len(first).to_bytes(4, "big")
    assert stream[20:].startswith(first)


LINKED = lz4.frame.compress(TEXT, block_linked=True, content_checksum=True, block_checksum=True)
STREAMED = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(TEXT)


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [
        (Codec.SNAPPY, snappy.compress(TEXT)),
        (Codec.LZ4, LINKED),
        (Codec.LZ4, lz4.frame.compress(TEXT, block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
        (Codec.ZSTD, STREAMED),
        (Codec.GZIP, gzip.compress(TEXT)),
    ],
    ids=["bare snappy block", "linked lz4 blocks", "one large lz4 block", "streamed zstd", "gzip with a time"],
)
def test_other_framings_are_read(codec: Codec, compressed: bytes) -> None:
    """
    Clients other than Java's may write them.
    """
    assert decompress(codec, compressed, ROOM) == TEXT


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_concatenated_members_are_read(codec: Codec) -> None:
    """
    Their contents are concatenated.
    """
    parts = [b"one", b"", TEXT, b"two"]
    assert decompress(codec, b"".join(compress(codec, part) for part in parts), ROOM) == b"".join(parts)


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    """
    Output of the limit's size is allowed, and not a byte more.
    """
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 100, 0):
        with pytest.raises(ValueError, match=f"^it decompresses to more than {limit} bytes$"):
            decompress(codec, compressed, limit)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_truncated_data_is_refused(codec: Codec) -> None:
    """
    It gives no bytes, except for whole blocks of snappy.
    """
    compressed = compress(codec, TEXT[:40000])
    whole_blocks = {16: 0, 20 + int.from_bytes(compressed[16:20], "big"): 1 << 15} if codec is Codec.SNAPPY else {}
    for end in [*range(60), *range(60, len(compressed), 31), len(compressed) - 1]:
        if end in whole_blocks:
            assert len(decompress(codec, compressed[:end], ROOM)) == whole_blocks[end]
        else:  # fewer than snappy's first eight bytes look like a bare block
            bare = codec is Codec.SNAPPY and 0 < end < 8
            with pytest.raises(ValueError, match="cannot hold|corrupt|ends too early" if bare else "ends too early"):
                decompress(codec, compressed[:end], ROOM)


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("bytes_behind", [b"\0", b"junk that is not compressed"])
def test_trailing_bytes_are_refused(codec: Codec, bytes_behind: bytes) -> None:
    with pytest.raises(ValueError, match=r"damaged|ends too early|cannot hold"):
        decompress(codec, compress(codec, TEXT) + bytes_behind, ROOM)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_damage_is_a_value_error(codec: Codec) -> None:
    """
    The message is plain.
    """
    with pytest.raises(ValueError, match=rf"^damaged {codec.name.lower()} data: \w|^a snappy block of \d+ bytes") as e:
        decompress(codec, b"\x7fno codec begins like this", ROOM)
    assert type(e.value) is ValueError


def test_snappy_damage_has_the_reason_of_the_library() -> None:
    """
    python-snappy hides it.
    """
    with pytest.raises(ValueError, match=r"^damaged snappy data: .*corrupt input"):
        decompress(Codec.SNAPPY, b"\x05\x0cab", ROOM)


def test_snappy_blocks_cannot_declare_more_than_they_can_hold() -> None:
    """
    No memory is allocated for a block too short for its declared size, whatever the limit.
    """
    assert decompress(Codec.SNAPPY, snappy.compress(bytes(1 << 20)), 1 << 30) == bytes(1 << 20)
    with pytest.raises(ValueError, match=r"^a snappy block of 9 bytes cannot hold the 268435455 it declares$"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\x7f\x0cabcd", 1 << 30)


@pytest.mark.skipif(not CAN_MEASURE, reason="needs Linux's /proc")
@pytest.mark.parametrize("codec", COMPRESSING)
def test_bombs_cost_little_memory(codec: Codec) -> None:
    """
    Data that decompresses to a thousand times the limit, or declares to, is refused within a few megabytes.
    """
    assert growth(codec, LIMIT) < 4 << 20


@pytest.mark.skipif(not CAN_MEASURE, reason="needs Linux's /proc")
def test_bombs_would_take_much_memory() -> None:
    """
    The measurement notices a bomb that is decompressed almost to its end.
    """
    assert growth(Codec.GZIP, OUTPUT - 1) > OUTPUT // 2


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_many_tiny_frames_are_read_in_linear_time(codec: Codec) -> None:
    """
    Three hundred thousand frames of one byte cost no more than their bytes, because the rest is not copied.
    """
    many = compress(codec, b"x") * 300_000
    began = time.process_time()
    assert decompress(codec, many, 300_000) == b"x" * 300_000
    assert time.process_time() - began < 5  # 0.3 here, and a minute if each frame copied the rest
