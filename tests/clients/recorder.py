"""
A proxy between clients and a gateway that records all bytes.
"""

import socket
from contextlib import suppress
from threading import Lock, Thread
from time import time
from types import TracebackType
from typing import Self

from tests.clients.pcap import PIECE_BYTES_MAX, Piece


class Recorder:
    """
    Forwards what arrives at its address, for a `with` block. The gateway has to advertise that address, so the
    recorder learns only later where the gateway is.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.gateway_port = 0
        self.pieces: list[Piece] = []
        self._lock = Lock()
        self._sockets = [self._listener]
        self._accepting = Thread(target=self._accept)
        self._passing: list[Thread] = []

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._accepting.join()
        for one in self._sockets:
            with suppress(OSError):  # the other side may have closed it
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._passing:
            thread.join()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # shut down
                return
            gateway = socket.create_connection(("127.0.0.1", self.gateway_port))
            self._sockets += [client, gateway]
            number = len(self._passing)
            for by_client, source, target in [(True, client, gateway), (False, gateway, client)]:
                self._passing.append(Thread(target=self._pass_on, args=(number, by_client, source, target)))
                self._passing[-1].start()

    def _pass_on(self, connection: int, by_client: bool, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # one of them hung up
            while data := source.recv(PIECE_BYTES_MAX):
                with self._lock:  # a response is recorded before its receiver gets it
                    self.pieces.append(Piece(time(), connection, by_client, data))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
