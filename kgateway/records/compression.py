"""
The five codecs that a record batch can name.

Compression writes what Kafka's Java client writes: snappy in the block framing of the xerial library, lz4 in frames of
independent 64 KiB blocks. Decompression trusts no length: data comes out in small pieces that are counted against a
limit, so that a bomb costs little more than the limit. All its failures are ValueErrors with a plain reason.

The libraries release the interpreter lock while they work.
"""

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum

import lz4.frame
import snappy
import zstandard

from kgateway.wire.types import Buffer
from kgateway.wire.varints import read_uvarint


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# The levels of compression.gzip.level, compression.lz4.level and compression.zstd.level.
_LEVELS = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-(1 << 17), 23)}
_DEFAULT_LEVEL = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}

_GZIP_FORM = 31  # zlib's code for a gzip header and a window of up to 32 KiB
_SNAPPY_STREAM = b"\x82SNAPPY\0"
_SNAPPY_VERSIONS = b"\0\0\0\1\0\0\0\1"  # written by version 1, to be read from version 1 on
_SNAPPY_BLOCK_BYTES = 1 << 15
_PIECE_BYTES = 1 << 16  # the largest piece of gzip or lz4
_IDLE_PIECES_MAX = 1 << 13  # empty blocks, members and frames cost time; the largest block of zstd comes in 4096 steps
_GZIP_INPUT_BYTES = 1 << 13  # input left over at the end of a member is copied, and members may be tiny
_ZSTD_EXPANSION = 1 << 15  # four bytes can stand for a block of 128 KiB


def check_level(codec: Codec, level: int | None) -> None:
    """
    Refuse a level that Kafka would refuse. `None` is the default.
    """
    if level is None or level == _DEFAULT_LEVEL.get(codec):
        return
    levels = _LEVELS.get(codec)
    if levels is None:
        raise ValueError(f"{codec.name.lower()} has no levels")
    if level not in levels:
        raise ValueError(f"{codec.name.lower()} has levels {levels.start} to {levels.stop - 1}, not {level}")


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    check_level(codec, level)
    return _COMPRESS[codec](data, _DEFAULT_LEVEL.get(codec, 0) if level is None else level)


def decompress(codec: Codec, data: Buffer, limit: int) -> bytes:
    """
    The decompressed data, if it has at most `limit` bytes.
    """
    pieces, room, idle = [], limit, 0
    try:
        for piece in _DECOMPRESS[codec](memoryview(data), limit):
            room -= len(piece)
            if room < 0:
                raise ValueError(f"it decompresses to more than {limit} bytes")
            if piece:
                pieces.append(piece)
            idle = 0 if piece else idle + 1
            if idle > _IDLE_PIECES_MAX:
                raise ValueError(f"it cannot be decompressed beyond {sum(map(len, pieces))} bytes")
    except (zlib.error, snappy.UncompressError, zstandard.ZstdError, RuntimeError) as damage:  # lz4 has no error class
        # python-snappy has no message; that of the library is the cause.
        raise ValueError(f"damaged {codec.name.lower()} data: {damage.__cause__ or damage}") from None
    return b"".join(pieces)


def _gzip(data: memoryview, limit: int) -> Iterator[bytes]:
    pos = 0
    while True:
        member = zlib.decompressobj(_GZIP_FORM)
        while not member.eof:
            chunk = member.unconsumed_tail or data[pos : pos + _GZIP_INPUT_BYTES]
            if not chunk:
                raise ValueError("the gzip data ends too early")
            if not member.unconsumed_tail:
                pos += len(chunk)
            yield member.decompress(chunk, _PIECE_BYTES)
        pos -= len(member.unused_data)
        if pos == len(data):
            return


def _snappy_compress(data: Buffer, level: int) -> bytes:
    view = memoryview(data)
    parts = [_SNAPPY_STREAM + _SNAPPY_VERSIONS]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = snappy.compress(view[start : start + _SNAPPY_BLOCK_BYTES])
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _snappy(data: memoryview, limit: int) -> Iterator[bytes]:
    """
    A header, then blocks after their sizes, as Java writes; or a single bare block, as librdkafka writes.
    """
    if data[:8] != _SNAPPY_STREAM:
        yield _snappy_block(data, limit)
        return
    pos = len(_SNAPPY_STREAM + _SNAPPY_VERSIONS)
    while pos != len(data):
        size = int.from_bytes(data[pos : pos + 4], "big")
        start, pos = pos + 4, pos + 4 + size
        if pos > len(data):
            raise ValueError("the snappy data ends too early")
        yield _snappy_block(data[start:pos], limit)


def _snappy_block(block: memoryview, limit: int) -> bytes:
    """
    A block begins with its decompressed size, which the library allocates.
    """
    try:
        size, _ = read_uvarint(bytes(block[:5]), 0)
    except IndexError:
        raise ValueError("the snappy data ends too early") from None
    if size > limit:
        raise ValueError(f"it decompresses to more than {limit} bytes")
    if size * 3 > len(block) * 64:  # the densest element: 64 bytes out of three
        raise ValueError(f"a snappy block of {len(block)} bytes cannot hold the {size} it declares")
    return snappy.uncompress(block)  # type: ignore[no-any-return]


def _lz4_compress(data: Buffer, level: int) -> bytes:
    # As Kafka: the default level is the fast compressor, all others the high one, which in lz4's own count begins at 3.
    level = 0 if level == _DEFAULT_LEVEL[Codec.LZ4] else max(level, 3)
    return lz4.frame.compress(  # type: ignore[no-any-return]
        data, level, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )


def _lz4(data: memoryview, limit: int) -> Iterator[bytes]:
    context = lz4.frame.create_decompression_context()
    pos, ended = 0, False
    while pos < len(data) or not ended:
        piece, used, ended = lz4.frame.decompress_chunk(context, data[pos:], max_length=_PIECE_BYTES)
        if not (piece or used):
            raise ValueError("the lz4 data ends too early")
        pos += used
        yield piece


def _zstd_compress(data: Buffer, level: int) -> bytes:
    return zstandard.ZstdCompressor(level).compress(data)


def _zstd(data: memoryview, limit: int) -> Iterator[bytes]:
    """
    Frames, one after the other.

    The library cannot bound its output, so its input is bounded: one step decompresses to less than the limit, or to a
    megabyte. Its stream readers, which have a bound, do not notice a frame that is cut off.
    """
    step = min(max(limit // _ZSTD_EXPANSION, 32), 4096)
    decompressor = zstandard.ZstdDecompressor()
    pos = 0
    while True:
        frame = decompressor.decompressobj()
        while not frame.eof:
            chunk = data[pos : pos + step]
            if not chunk:
                raise ValueError("the zstd data ends too early")
            pos += len(chunk)
            yield frame.decompress(chunk)
        pos -= len(frame.unused_data)
        if pos == len(data):
            return


_COMPRESS: dict[Codec, Callable[[Buffer, int], bytes]] = {
    Codec.NONE: lambda data, level: bytes(data),
    Codec.GZIP: lambda data, level: zlib.compress(data, level, _GZIP_FORM),
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: _lz4_compress,
    Codec.ZSTD: _zstd_compress,
}

_DECOMPRESS: dict[Codec, Callable[[memoryview, int], Iterator[bytes]]] = {
    Codec.NONE: lambda data, limit: iter([bytes(data)]),
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
