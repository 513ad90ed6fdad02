"""
Frames in a stream: an i32, then that many bytes.

A large frame is copied once, however small its pieces are. A size that is not allowed is refused before anything of the
frame is kept. The frames before it are good, so `failure` waits until they are served.
"""

import struct

from kgateway.wire.errors import Malformed, MessageField

HEAD_BYTES = 4
FRAME_BYTES_MAX = 100 << 20  # Kafka's socket.request.max.bytes

_size_at = struct.Struct(">i").unpack_from


class Framer:
    __slots__ = ("_head", "_max", "_missing", "_pieces", "declared", "failure")
    _pieces: list[bytes]  # what has arrived of the incomplete frame, while there is one

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.declared = 0  # the size of the incomplete frame
        self.failure: Malformed | None = None  # no frame comes after it
        self._max = frame_bytes_max
        self._missing = 0  # bytes of the incomplete frame that have not arrived
        self._head = b""  # the start of a size

    def feed(self, data: bytes) -> list[bytes]:
        """
        The frames that these bytes complete, without their sizes.
        """
        frames: list[bytes] = []
        if self.failure:
            return frames
        if self._missing:
            pos = self._continue(data, frames)
        else:
            data, self._head, pos = self._head + data, b"", 0
        while len(data) - pos >= HEAD_BYTES and not self.failure:
            (size,) = _size_at(data, pos)
            start = pos + HEAD_BYTES
            pos = start + size
            if not 0 <= size <= self._max:
                reason = f"a frame of {size} bytes; at most {self._max} are allowed"
                self.failure = Malformed(MessageField("Frame", 0, "size"), 0, reason)
            elif pos > len(data):
                self.declared, self._missing, self._pieces = size, pos - len(data), [data[start:]]
            else:
                frames.append(data[start:pos])
        self._head = data[pos:]
        return frames

    def _continue(self, data: bytes, frames: list[bytes]) -> int:
        """
        Add to the incomplete frame. Returns where in the data it ends.
        """
        piece = data[: self._missing]
        self._pieces.append(piece)
        self._missing -= len(piece)
        if not self._missing:
            frames.append(b"".join(self._pieces))
            del self._pieces
            self.declared = 0
        return len(piece)
