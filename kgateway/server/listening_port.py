"""
A listening port that is closed while there is nothing to serve: clients are then refused and try another gateway. Some
clients that are accepted and disconnected reconnect for ever.
"""

from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IDelayedCall, IListeningPort, IReactorTime
from twisted.internet.tcp import Port, Server
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.log_messages import CANNOT_LISTEN_AGAIN, PORT_CLOSED_BADLY

_RETRY_S = 1.0


class ClientTransport(Server):
    """
    Twisted's transport without a text for its representation, which takes a twentieth of the memory of an idle
    connection. The prefix for the log is kept: Twisted asks for it whenever there is something to read.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        del self.repstr

    def __repr__(self) -> str:
        return f"<{self.logstr}>"


class ListeningPort:
    _log = Logger()

    def __init__(self, port: IListeningPort, clock: IReactorTime) -> None:
        self._port = port
        self._clock = clock
        self._is_open = self._wants_open = True
        self._closing: Deferred[Any] | None = None
        self._retry: IDelayedCall | None = None
        where = port.getHost()
        if isinstance(port, Port) and isinstance(where, IPv4Address | IPv6Address):
            port.transport = ClientTransport  # type: ignore[assignment]  # Twisted's stub names the default alone
            port.port = where.port  # the system may have chosen it, and it must be the same the next time

    def set_open(self, is_open: bool) -> None:
        """
        Open or close the port, as soon as the change under way is done.
        """
        self._wants_open = is_open
        self._move()

    def stop(self) -> Deferred[None]:
        """
        Close the port for good. Fires once it is closed.
        """
        self.set_open(False)
        stopped: Deferred[None] = Deferred()
        if self._closing:
            self._closing.addBoth(stopped.callback)
        else:
            stopped.callback(None)
        return stopped

    def _move(self) -> None:
        if self._retry:
            self._retry.cancel()
            self._retry = None
        if self._closing or self._is_open == self._wants_open:
            return
        if self._wants_open:
            self._open()
        else:
            closing: Deferred[Any] = maybeDeferred(self._port.stopListening)
            self._closing = closing
            self._closing.addErrback(self._not_closed).addCallback(self._closed)

    def _open(self) -> None:
        try:
            self._port.startListening()
        except CannotListenError as error:
            self._log.error(CANNOT_LISTEN_AGAIN, error=error)
            self._retry = self._clock.callLater(_RETRY_S, self._try_again)
        else:
            self._is_open = True

    def _try_again(self) -> None:
        self._retry = None
        self._move()

    def _not_closed(self, failure: Failure) -> None:
        self._log.failure(PORT_CLOSED_BADLY, failure)

    def _closed(self, _: None) -> None:
        self._closing, self._is_open = None, False
        self._move()
