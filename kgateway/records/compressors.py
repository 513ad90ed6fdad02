"""
The functions of each codec, by libraries for snappy, lz4 and zstd.
"""

import zlib
from collections.abc import Callable, Iterator

import lz4.frame
import snappy
import zstandard

from kgateway.records.compression import DEFAULT_LEVEL, Codec
from kgateway.wire.types import Buffer
from kgateway.wire.varints import read_uvarint

# What the libraries raise for damaged data. lz4 has no error class.
DAMAGE = (zlib.error, snappy.UncompressError, zstandard.ZstdError, RuntimeError)

_GZIP_FORM = 31  # zlib's code for a gzip header and a window of up to 32 KiB
_SNAPPY_STREAM = b"\x82SNAPPY\0"
_SNAPPY_VERSIONS = b"\0\0\0\1\0\0\0\1"  # written by version 1, to be read from version 1 on
_SNAPPY_BLOCK_BYTES = 1 << 15
_PIECE_BYTES = 1 << 16  # the largest piece of gzip or lz4
_GZIP_INPUT_BYTES = 1 << 13  # input left over at the end of a member is copied, and members may be tiny
_ZSTD_EXPANSION = 1 << 15  # four bytes can stand for a block of 128 KiB


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
    level = 0 if level == DEFAULT_LEVEL[Codec.LZ4] else max(level, 3)
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


COMPRESS: dict[Codec, Callable[[Buffer, int], bytes]] = {
    Codec.GZIP: lambda data, level: zlib.compress(data, level, _GZIP_FORM),
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: _lz4_compress,
    Codec.ZSTD: _zstd_compress,
}

DECOMPRESS: dict[Codec, Callable[[memoryview, int], Iterator[bytes]]] = {
    Codec.NONE: lambda data, limit: iter([bytes(data)]),
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
