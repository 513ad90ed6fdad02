"""
Decompression bombs, and the memory that refusing them takes.

The bombs of a codec are refused by a process of its own, this module run as a program: only the high-water mark of a
whole process includes the memory of C libraries, and only a process that has not made the bombs has no memory free
for them.
"""

import pickle
import re
import subprocess
import sys
import zlib
from pathlib import Path

import lz4.frame
import snappy
import zstandard

from kgateway.records.compression import Codec, compress, decompress

LIMIT = 1 << 16
OUTPUT = 1024 * LIMIT  # bytes of each bomb
_CHUNK = bytes(1 << 20)
_CHUNKS = OUTPUT // len(_CHUNK)
_EMPTIES = 1_000_000  # empty blocks, members or frames
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
CAN_MEASURE = _CLEAR.exists()


def bombs(codec: Codec) -> list[bytes]:
    """
    Data that decompresses to a thousand times the limit, declares to, or decompresses to nothing a million times.
    """
    return {Codec.GZIP: _gzip, Codec.SNAPPY: _snappy, Codec.LZ4: _lz4, Codec.ZSTD: _zstd}[codec]()


def _gzip() -> list[bytes]:
    member = zlib.compressobj(9, zlib.DEFLATED, 31)
    one = b"".join([*(member.compress(_CHUNK) for _ in range(_CHUNKS)), member.flush()])
    return [one, zlib.compress(_CHUNK, 9, 31) * _CHUNKS, zlib.compress(b"", 9, 31) * _EMPTIES]


def _snappy() -> list[bytes]:
    stream = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    block = snappy.compress(_CHUNK[: LIMIT // 2])
    blocks = stream + (len(block).to_bytes(4, "big") + block) * (OUTPUT // (LIMIT // 2))
    lie = b"\xff\xff\xff\xff\x0f" + block  # it declares four gigabytes
    small_lie = b"\x80\x80\x04" + b"\0" * 5  # the limit, out of five bytes
    lies = [lie, stream + len(lie).to_bytes(4, "big") + lie, small_lie]
    return [blocks, *lies, snappy.compress(_CHUNK * _CHUNKS), stream + b"\0\0\0\1\0" * _EMPTIES]


def _lz4() -> list[bytes]:
    frame = lz4.frame.compress(_CHUNK, block_size=lz4.frame.BLOCKSIZE_MAX64KB)
    with lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX64KB) as writer:
        one = b"".join([writer.begin(), *(writer.compress(_CHUNK) for _ in range(_CHUNKS)), writer.flush()])
        lie = writer.begin(source_size=1 << 40)
    return [one, frame * _CHUNKS, lie, lz4.frame.compress(b"") * _EMPTIES]


def _zstd() -> list[bytes]:
    writer = zstandard.ZstdCompressor().compressobj()
    one = b"".join([*(writer.compress(_CHUNK) for _ in range(_CHUNKS)), writer.flush()])
    magic = b"\x28\xb5\x2f\xfd"
    block = b"\x03\0\x10\0"  # the last block: a zero byte, 128 KiB times
    lies = [magic + b"\xa0" + (100 << 20).to_bytes(4, "little"), magic + b"\xe0" + (1 << 40).to_bytes(8, "little")]
    windows = [magic + b"\0" + window + block for window in (b"\x88", b"\xf8")]  # 128 MiB; a terabyte
    empties = zstandard.compress(b"") * _EMPTIES
    return [one, zstandard.compress(_CHUNK) * _CHUNKS, empties, *lies, windows[0] * (OUTPUT >> 17), *windows]


def growth(codec: Codec, limit: int) -> int:
    """
    How much peak memory rises when all bombs of a codec are refused.
    """
    command = [sys.executable, "-m", "tests.records.bombs", codec.name, str(limit)]
    made = pickle.dumps(bombs(codec))
    run = subprocess.run(command, cwd=Path(__file__).parents[2], input=made, capture_output=True, check=True)
    return int(run.stdout)


def _growth_here(codec: Codec, limit: int) -> int:
    made = pickle.load(sys.stdin.buffer)
    decompress(codec, compress(codec, b"harmless"), limit)  # memory that the library allocates once
    _CLEAR.write_text("5")  # resets the peak to the current size
    before = _peak_bytes()
    for bomb in made:
        try:
            decompress(codec, bomb, limit)
        except ValueError:
            continue
        sys.exit(f"not refused: {bomb[:40]!r}")
    return _peak_bytes() - before


def _peak_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
    assert found
    return int(found[1]) << 10


if __name__ == "__main__":
    print(_growth_here(Codec[sys.argv[1]], int(sys.argv[2])))
