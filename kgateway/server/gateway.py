"""
The gateway as an object: a broker, the handlers in front of it, and the clients on its listeners.

It owns no process and parses no options. The service that twistd runs, the fixtures of tests and programs that embed a
gateway all make one of these.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EISDIR, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTSOCK
from functools import partial
from socket import EAI_AGAIN, gaierror
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXServerEndpoint, serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IReactorTime
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from kgateway.cluster.view import Address
from kgateway.config.listeners import Listener
from kgateway.config.settings import Settings, machine_memory_bytes
from kgateway.context import GatewayParts, Session
from kgateway.interfaces import Cancel, IAuthorizer
from kgateway.observe.printable import printable
from kgateway.observe.reasons import ReasonKind, Reasons
from kgateway.security.authorizer import AllowAll
from kgateway.server.addresses import NOWHERE, address_of, advertised, reachable
from kgateway.server.brokers import open_broker
from kgateway.server.budget import RequestMemory
from kgateway.server.clients import Clients
from kgateway.server.connection import Connection
from kgateway.server.discovery import discover
from kgateway.server.dispatch import Dispatcher
from kgateway.server.listening_port import ListeningPort
from kgateway.server.registry import Plugin, Registry
from kgateway.socket_file import unix_socket_file
from kgateway.wire.errors import Malformed

# Python has no number for the address of a socket that is too long.
_OF_NAMES = (ENOENT, ENOTDIR, EISDIR, ENOTSOCK, ENAMETOOLONG, None)
_LOGGED_CHARS = 400  # clients choose names, and long ones
# Why a listener cannot be opened, and what to do.
_REASONS = {
    EACCES: "permission denied; name a port above 1023, or a socket in a folder of this user, with --listen",
    EADDRINUSE: "the port is in use; stop the program that uses it, or listen on another port with --listen",
    EADDRNOTAVAIL: "this machine has no such address; use one that it has, or no interface=, in --listen",
}


class StartError(Exception):
    """
    The gateway cannot start. The message says why, and what to do.
    """


class StartMistake(StartError):
    """
    The gateway can never start with this value of an option, such as a file in a folder that does not exist.
    """

    @classmethod
    def fits(cls, error: object) -> bool:
        """
        Whether this error of the system is about a name: of a file, or of a host. While a machine starts, its name
        server may not respond yet.
        """
        if isinstance(error, gaierror):
            return error.errno != EAI_AGAIN
        return isinstance(error, OSError) and error.errno in _OF_NAMES


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Gateway:
    """
    Serves Kafka clients in this process. By default all operations are allowed, and the gateway uses the plugins that
    are installed or that `settings.handlers` names.
    """

    _log = Logger()

    def __init__(
        self,
        settings: Settings,
        reactor: IReactorTime,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        authorizer: IAuthorizer | None = None,
        plugins: Iterable[Plugin] | None = None,
    ) -> None:
        self.settings = settings
        self.broker = open_broker(settings, now_ms, reactor)
        self.reasons = Reasons()
        self.registry = Registry(discover(settings.handlers) if plugins is None else plugins)
        self.parts = GatewayParts(
            broker=self.broker,
            settings=settings,
            authorizer=authorizer or AllowAll(),
            clock=reactor,
            now_ms=now_ms,
            advertised=self.registry.advertised,
            in_thread=partial(_in_thread, reactor),
        )
        self.dispatcher = Dispatcher(self.parts, self.registry, self.reasons)
        self.parts.ask = self.dispatcher.ask
        self.clients = Clients(
            reactor,
            self.parts.actions,
            RequestMemory(settings.request_budget_bytes(machine_memory_bytes()), settings.max_request_bytes),
            frame_bytes_max=settings.max_request_bytes,
            max_idle_seconds=settings.max_idle_ms / 1000,
            complain=self._complain,
        )
        self._reactor = reactor
        self._ports: list[ListeningPort] = []
        self._stop_watching: Cancel = lambda: None

    async def start(self) -> list[Address]:
        """
        Open the broker and then the listeners. Return the addresses to which the listeners are bound.
        """
        await self.broker.start()
        for kind in self.registry.services:
            self.parts.service(kind)
        self._stop_watching = self.broker.watch(self._view_changed)
        try:
            bound = [await self._listen(listener) for listener in self.settings.listen]
        except BaseException:
            await self.undo_start()
            raise
        self.broker.announce(reachable(self.settings, bound))
        return bound

    async def stop(self) -> None:
        """
        Stop accepting clients, end all waits, answer the requests that have started, and close the broker.
        """
        await self._stop(self.broker.stop)

    async def undo_start(self) -> None:
        """
        Stop, because the process around the gateway could not start.
        """
        await self._stop(self.broker.undo_start)

    async def _stop(self, close: Callable[[], Deferred[None]]) -> None:
        self._stop_watching()
        self.broker.leave()
        ports, self._ports = self._ports, []
        for port in ports:
            await port.stop()
        self.parts.stop()
        await self.clients.finish(self.settings.stop_timeout_ms / 1000)
        await close()

    def stats(self) -> dict[str, int]:
        memory = self.clients.memory
        return {"connections": len(self.clients), "request_bytes": memory.small.used + memory.large.used}

    def connections(self) -> list[Callable[[], dict[str, Any]]]:
        return self.clients.describers(self.parts.now_ms)

    @property
    def serves(self) -> bool:
        return bool(self.broker.view().nodes)

    def _view_changed(self) -> None:
        serves = self.serves
        for port in self._ports:
            port.set_open(serves)
        if not serves:
            self.clients.close_all()

    async def _listen(self, listener: Listener) -> Address:
        factory = ListenerFactory(self, listener.name, advertised(self.settings).get(listener.name))
        try:
            port = await self._bound(listener, factory)
        except (CannotListenError, OSError) as error:
            why = error.socketError if isinstance(error, CannotListenError) else error
            kind = StartMistake if StartMistake.fits(why) else StartError
            raise kind(f"{listener}: {_why(why)}") from None
        except (ValueError, TypeError) as error:
            raise StartError(f"{listener} is not an endpoint that Twisted can open: {error}") from None
        address = address_of(port.getHost())
        listening = ListeningPort(port, self._reactor)
        listening.set_open(self.serves)
        self._ports.append(listening)
        return address

    async def _bound(self, listener: Listener, factory: Factory) -> IListeningPort:
        endpoint = serverFromString(self._reactor, listener.endpoint)
        is_file = isinstance(endpoint, UNIXServerEndpoint)
        with unix_socket_file(endpoint._address) if is_file else nullcontext():
            port: IListeningPort = await endpoint.listen(factory)
        return port

    def _complain(self, session: Session, error: Exception | str) -> None:
        kind = ReasonKind.MALFORMED if isinstance(error, Malformed) else ReasonKind.CLOSED
        reason = str(error)
        self.reasons.remember(self.parts.now_ms(), session, reason, kind=kind)
        self._log.info(
            "{host} on {listener} closed: {reason}",
            host=session.host,
            listener=session.listener,
            reason=printable(reason[:_LOGGED_CHARS]),
        )


class ListenerFactory(Factory):
    noisy = False

    def __init__(self, gateway: Gateway, listener: str, advertised: Address | None) -> None:
        self._gateway = gateway
        self._listener = listener
        self._advertised = advertised
        self._serve = gateway.dispatcher.serve  # one method for all connections, and not one each

    def buildProtocol(self, addr: IAddress | None) -> Connection | None:
        if not self._gateway.serves:
            return None  # Twisted closes the connection
        host = address_of(addr).host if addr else ""
        session = Session(listener=self._listener, host=host, local=NOWHERE, advertised=self._advertised)
        return Connection(self._serve, session, self._gateway.clients)


def _in_thread(reactor: Any, call: Callable[[], Any]) -> Deferred[Any]:
    return deferToThreadPool(reactor, reactor.getThreadPool(), call)


def _why(error: OSError) -> str:
    if isinstance(error, gaierror):
        return f"the host name cannot be resolved ({error.strerror}); use an address of this machine in --listen"
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    return f"{error.strerror or error}; name another endpoint with --listen"
