"""
The gateway as objects: a broker, the handlers in front of it, and the clients on its listeners.

It owns no process and no options; the service that twistd runs, the fixture of tests and programs that embed a gateway
all make one of these.
"""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from kgateway.cluster.view import Address
from kgateway.config.listeners import Listener
from kgateway.config.settings import Settings, machine_memory_bytes
from kgateway.context import GatewayParts, Session
from kgateway.interfaces import Cancel, IAuthorizer
from kgateway.observe.plain import printable
from kgateway.observe.reasons import Kind, Reasons
from kgateway.security.authorizer import AllowAll
from kgateway.server.addresses import NOWHERE, address_of, advertised, reached
from kgateway.server.brokers import open_broker
from kgateway.server.budget import RequestMemory
from kgateway.server.clients import Clients
from kgateway.server.connection import Connection
from kgateway.server.discovery import discover
from kgateway.server.dispatch import Dispatcher
from kgateway.server.door import Door
from kgateway.server.registry import Plugin, Registry
from kgateway.wire.malformed import Malformed

_LOGGED_CHARS = 400  # clients choose names, and long ones


class StartError(Exception):
    """
    The gateway cannot start; the message says why and what to do.
    """


def wall_clock_ms() -> int:
    """
    The time of day, for timestamps.
    """
    return time.time_ns() // 1_000_000


class Gateway:
    """
    One gateway.
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
        self.clients = Clients(
            reactor,
            RequestMemory(settings.request_budget_bytes(machine_memory_bytes()), settings.max_request_bytes),
            frame_bytes_max=settings.max_request_bytes,
            max_idle_seconds=settings.max_idle_ms / 1000,
            complain=self._complain,
        )
        self._reactor = reactor
        self._doors: list[Door] = []
        self._look_no_more: Cancel = lambda: None

    async def start(self) -> list[Address]:
        """
        Open the broker, then the listeners; where they are bound.
        """
        await self.broker.start()
        for kind in self.registry.services:
            self.parts.service(kind)
        self._look_no_more = self.broker.watch(self._look)
        try:
            bound = [await self._listen(listener) for listener in self.settings.listen]
        except BaseException:
            await self.stop()
            raise
        self.broker.announce(reached(self.settings, bound))
        return bound

    async def stop(self) -> None:
        """
        Accept no more, let nobody wait for others, answer what has started, close the broker.
        """
        self._look_no_more()
        self.broker.leave()
        doors, self._doors = self._doors, []
        for door in doors:
            await door.stop()
        self.parts.stop()
        await self.clients.finish(self.settings.stop_timeout_ms / 1000)
        await self.broker.stop()

    def stats(self) -> dict[str, int]:
        """
        How much is connected and held just now.
        """
        memory = self.clients.memory
        return {"connections": len(self.clients), "request_bytes": memory.small.used + memory.large.used}

    def connections(self) -> list[Callable[[], dict[str, Any]]]:
        """
        A way to look at each connection.
        """
        return self.clients.looks(self.parts.now_ms)

    @property
    def serves(self) -> bool:
        """
        Whether there is a cluster of which this gateway is a part just now.
        """
        return bool(self.broker.view().nodes)

    def _look(self) -> None:
        serves = self.serves
        for door in self._doors:
            door.let_be_open(serves)
        if not serves:
            self.clients.send_away()

    async def _listen(self, listener: Listener) -> Address:
        factory = Listening(self, listener.name, advertised(self.settings).get(listener.name))
        try:
            port = await serverFromString(self._reactor, listener.endpoint).listen(factory)
        except CannotListenError as error:
            # Of a daemon's message a hundred bytes reach the terminal: what and why come first.
            raise StartError(f"{listener}: {_why(error.socketError)}: change --listen or free it") from None
        except (ValueError, TypeError) as error:
            raise StartError(f"{listener} is no endpoint that Twisted can open: {error}") from None
        address = address_of(port.getHost())
        door = Door(port, self._reactor)
        door.let_be_open(self.serves)
        self._doors.append(door)
        return address

    def _complain(self, session: Session, error: Exception | str) -> None:
        """
        Remember why a client is sent away.
        """
        kind = Kind.MALFORMED if isinstance(error, Malformed) else Kind.CLOSED
        reason = str(error)
        self.reasons.remember(self.parts.now_ms(), session, reason, kind=kind)
        self._log.info(
            "{host} on {listener} closed: {reason}",
            host=session.host,
            listener=session.listener,
            reason=printable(reason[:_LOGGED_CHARS]),
        )


class Listening(Factory):
    """
    Makes a connection of each client that comes through one listener.
    """

    noisy = False

    def __init__(self, gateway: Gateway, listener: str, advertised: Address | None) -> None:
        self._gateway = gateway
        self._listener = listener
        self._advertised = advertised

    def buildProtocol(self, addr: IAddress | None) -> Connection | None:
        if not self._gateway.serves:
            return None  # the client is sent away
        host = address_of(addr).host if addr else ""
        session = Session(listener=self._listener, host=host, local=NOWHERE, advertised=self._advertised)
        return Connection(self._gateway.dispatcher.serve, session, self._gateway.clients)


def _in_thread(reactor: Any, call: Callable[[], Any]) -> Deferred[Any]:
    return deferToThreadPool(reactor, reactor.getThreadPool(), call)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
