"""
The five codecs that a record batch can name.

Compression writes what Kafka's Java client writes: snappy in the block framing of the xerial library, lz4 in frames of
independent 64 KiB blocks. Decompression trusts no length: data comes out in small pieces that are counted against a
limit, so that a bomb costs little more than the limit. All its failures are ValueErrors with a plain reason.

The libraries release the interpreter lock while they work. They are imported on first use (compressors.py), because
they take 2 MiB, and many gateways never need them: records are stored as producers compress them.
"""

from enum import IntEnum

from kgateway.wire.types import Buffer


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# The levels of compression.gzip.level, compression.lz4.level and compression.zstd.level.
_LEVELS = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-(1 << 17), 23)}
DEFAULT_LEVEL = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}

_IDLE_PIECES_MAX = 1 << 13  # empty blocks, members and frames cost time; the largest block of zstd comes in 4096 steps


def check_level(codec: Codec, level: int | None) -> None:
    """
    Refuse a level that Kafka would refuse. `None` is the default.
    """
    if level is None or level == DEFAULT_LEVEL.get(codec):
        return
    levels = _LEVELS.get(codec)
    if levels is None:
        raise ValueError(f"{codec.name.lower()} has no levels")
    if level not in levels:
        raise ValueError(f"{codec.name.lower()} has levels {levels.start} to {levels.stop - 1}, not {level}")


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    if level is not None:
        check_level(codec, level)
    if codec is Codec.NONE:
        return bytes(data)
    from kgateway.records.compressors import COMPRESS

    return COMPRESS[codec](data, DEFAULT_LEVEL.get(codec, 0) if level is None else level)


def decompress(codec: Codec, data: Buffer, limit: int) -> bytes:
    """
    The decompressed data, if it has at most `limit` bytes.
    """
    from kgateway.records.compressors import DAMAGE, DECOMPRESS

    pieces, room, idle = [], limit, 0
    try:
        for piece in DECOMPRESS[codec](memoryview(data), limit):
            room -= len(piece)
            if room < 0:
                raise ValueError(f"it decompresses to more than {limit} bytes")
            if piece:
                pieces.append(piece)
            idle = 0 if piece else idle + 1
            if idle > _IDLE_PIECES_MAX:
                raise ValueError(f"it cannot be decompressed beyond {sum(map(len, pieces))} bytes")
    except DAMAGE as damage:
        # python-snappy has no message; that of the library is the cause.
        raise ValueError(f"damaged {codec.name.lower()} data: {damage.__cause__ or damage}") from None
    return b"".join(pieces)
