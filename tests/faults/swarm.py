"""
Many connections that send frames at the same time, from one thread that waits long for none of them.
"""

import selectors
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random
from time import monotonic

from tests.faults.frames import Hostile

CONNECTIONS = 64
PATIENCE_S = 1.0  # for a response; a fetch may wait longer, and acks=0 has none
_PAUSE_S = 0.02  # how long half a frame is left with the server
_RESET = struct.pack("ii", 1, 0)


class Swarm:
    """
    Sends each frame through a free connection, and judges the response.
    """

    def __init__(self, port: int, frames: Iterator[Hostile], random: Random) -> None:
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._address = "127.0.0.1", port
        self._frames = frames
        self._random = random
        self._selector = selectors.DefaultSelector()
        self._deadlines: list[tuple[float, int, Attack]] = []

    def run(self) -> None:
        """
        Run until all frames are sent, and answered or given up.
        """
        with self._selector:
            for _ in range(CONNECTIONS):
                self._begin(None)
            while self._deadlines:
                for key, _ in self._selector.select(max(self._deadlines[0][0] - monotonic(), 0)):
                    self._go_on(key.data)
                self._give_up_the_late()

    def _give_up_the_late(self) -> None:
        now = monotonic()
        while self._deadlines and (self._deadlines[0][2].is_over or self._deadlines[0][0] < now):
            _, _, attack = heappop(self._deadlines)
            if not attack.is_over:
                self._end(attack, "left without an answer")

    def _begin(self, connection: socket.socket | None) -> None:
        """
        Send the next frame, if any, on this connection or a new one.
        """
        hostile = next(self._frames, None)
        if hostile is None:
            if connection:
                connection.close()
            return
        if connection is None:
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(self._address)
        attack = Attack(connection, hostile, _pieces(hostile.data, self._random))
        self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, attack)
        until = monotonic() + (PATIENCE_S if hostile.is_whole else _PAUSE_S)
        heappush(self._deadlines, (until, id(attack), attack))

    def _go_on(self, attack: "Attack") -> None:
        try:
            if attack.pieces:
                attack.connection.send(attack.pieces.pop(0))
                if not attack.pieces:
                    self._selector.modify(attack.connection, selectors.EVENT_READ, attack)
                return
            data = attack.connection.recv(1 << 20)
        except OSError:
            data = b""
        attack.received += data
        if not data:
            self._end(attack, "closed")
        elif attack.is_answered:
            self.wrong += attack.faults()
            self._end(attack, "answered")

    def _end(self, attack: "Attack", outcome: str) -> None:
        """
        Note the outcome of a frame; after a valid response the connection is used again.
        """
        self.outcomes[outcome] += 1
        attack.is_over = True
        self._selector.unregister(attack.connection)
        if outcome == "answered" and attack.hostile.correlation_id is not None:
            self._begin(attack.connection)
            return
        if not attack.hostile.is_whole and self._random.random() < 0.5:
            attack.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        attack.connection.close()
        self._begin(None)


class Attack:
    """
    A frame being sent.
    """

    def __init__(self, connection: socket.socket, hostile: Hostile, pieces: list[bytes]) -> None:
        self.connection = connection
        self.hostile = hostile
        self.pieces = pieces
        self.received = b""
        self.is_over = False

    @property
    def is_answered(self) -> bool:
        return len(self.received) >= 4 + int.from_bytes(self.received[:4], "big")

    def faults(self) -> Iterator[str]:
        """
        Report what is wrong with the response.
        """
        size, correlation_id = struct.unpack(">ii", self.received[:8])
        expected = self.hostile.correlation_id
        if expected is not None and (correlation_id, len(self.received)) != (expected, 4 + size):
            yield f"{self.hostile.what} {self.hostile.data.hex()} was answered with {self.received[:64].hex()}"


def _pieces(data: bytes, random: Random) -> list[bytes]:
    """
    Split a frame as it is sent: mostly not at all.
    """
    cut = random.randrange(len(data) + 1) if random.random() < 0.2 else len(data)
    return [piece for piece in (data[:cut], data[cut:]) if piece]
