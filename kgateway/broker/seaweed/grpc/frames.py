"""
Cuts what a connection receives into HTTP/2's frames.

Plain DATA frames, of which nearly all that comes consists, are told apart here: what `h2` does for one takes ten times
as long as the message in it. All other frames are left to `h2` whole.

    0                 3      4       5                   9
    | length of payload | type | flags | stream, big endian | payload ...
"""

from collections.abc import Iterator
from struct import Struct

FRAME_BYTES_MAX = 1 << 14  # of a payload, where nobody has agreed on more
_HEAD = Struct(">HBBBI")
_DATA = 0
_GOAWAY = 7
_WINDOW_UPDATE = 8
_GOAWAY_FIELDS = Struct(">II")
_WINDOW_UPDATE_FRAME = Struct(">HBBBII")


class FrameTooLong(Exception):
    """
    The peer sent a frame longer than it may.
    """


class Frames:
    """
    Of one connection.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """
        The frames that are whole with these bytes: of a plain DATA frame the stream and the payload, of any other 0 and
        the frame.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, size = 0, len(data)
        while size - at >= _HEAD.size:
            high, low, kind, flags, stream_id = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if length > FRAME_BYTES_MAX:
                raise FrameTooLong(f"a frame of {length} bytes; {FRAME_BYTES_MAX} were agreed on")
            end = at + _HEAD.size + length
            if end > size:
                break
            if kind == _DATA and not flags and stream_id:
                yield stream_id, data[at + _HEAD.size : end]
            else:
                yield 0, data[at:end]
            at = end
        self._rest = data[at:]


def last_stream_of_goaway(frame: bytes) -> int | None:
    """
    Up to which stream the peer answers still, where this is the frame that says it answers no new ones.
    """
    if frame[3] != _GOAWAY or len(frame) < _HEAD.size + _GOAWAY_FIELDS.size:
        return None
    last_stream: int = _GOAWAY_FIELDS.unpack_from(frame, _HEAD.size)[0]
    return last_stream & 0x7FFFFFFF


def window_update(stream_id: int, increment: int) -> bytes:
    """
    The frame that lets the peer send more: on this stream, or on 0, the connection.
    """
    return _WINDOW_UPDATE_FRAME.pack(0, 4, _WINDOW_UPDATE, 0, stream_id, increment)
