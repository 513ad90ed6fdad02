"""
A gateway in a program: what it opens and closes, in which order, and how its listeners treat clients.
"""

from collections.abc import Iterable
from dataclasses import replace
from socket import EAI_AGAIN, EAI_NONAME, gaierror
from typing import Any

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs, eventAsText
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kgateway.api import Context, api
from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.view import Address, Node
from kgateway.config.listeners import Advertised, Listener
from kgateway.config.settings import Settings
from kgateway.config.sources import SettingsError
from kgateway.context import GatewayParts
from kgateway.handlers.api_versions import api_versions
from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.observe.reasons import ReasonKind
from kgateway.security.authorizer import AllowAll
from kgateway.security.permissions import Free
from kgateway.server import gateway as module
from kgateway.server.connection import Connection
from kgateway.server.gateway import Gateway, ListenerFactory, StartError, StartMistake
from kgateway.server.registry import Plugin, PluginError
from kgateway.wire.codec import decode
from kgateway.wire.headers import request_frame
from tests.server.dispatcher import CLIENT_ID, CountRequest, CountResponse, count, plugins, read
from tests.server.test_connection import Transport
from tests.serving import START_MS, Denying

CLIENT = IPv4Address("TCP", "10.0.0.7", 40_000)


@implementer(IListeningPort)
class Port:
    """
    A listening port that records closing and reopening.
    """

    def __init__(self, address: IAddress, reactor: "Reactor") -> None:
        self._address = address
        self._reactor = reactor
        self._events = reactor.events

    def startListening(self) -> None:
        port: int = self._address.port  # type: ignore[attr-defined]  # of a TCP address
        if port in self._reactor.taken:
            raise CannotListenError("", port, self._reactor.taken[port])
        self._events.append(f"opened {port} again")

    def stopListening(self) -> Deferred[None]:
        self._events.append(f"closed {self._address.port}")  # type: ignore[attr-defined]  # of a TCP address
        return succeed(None)

    def getHost(self) -> IAddress:
        return self._address


class Reactor(MemoryReactorClock):
    """
    A reactor that records its ports; some are taken.
    """

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self.events = events
        self.taken: dict[int, OSError] = {}
        self.factories: list[ListenerFactory] = []

    def listenTCP(self, port: int, factory: ListenerFactory, backlog: int = 50, interface: str = "") -> IListeningPort:
        if port in self.taken:
            raise CannotListenError(interface, port, self.taken[port])
        self.factories.append(factory)
        self.events.append(f"opened {port}")
        return Port(IPv4Address("TCP", interface or "0.0.0.0", port or 50_000), self)


class Broker(MemoryBroker):
    """
    A broker that records opening and closing.
    """

    def __init__(self, events: list[str]) -> None:
        super().__init__(node_id=1, now_ms=lambda: START_MS)
        self._events = events

    def start(self) -> Deferred[None]:
        self._events.append("broker started")
        return super().start()

    def stop(self) -> Deferred[None]:
        self._events.append("broker stopped")
        return super().stop()

    def undo_start(self) -> Deferred[None]:
        self._events.append("start undone")
        return super().undo_start()

    def become_part_of(self, *nodes: Node) -> None:
        """
        Make these the nodes of the cluster.
        """
        self._show(replace(self._view, nodes=nodes))


def listeners(*endpoints: str) -> tuple[Listener, ...]:
    """
    Listeners named a, b, ...
    """
    return tuple(Listener(name, endpoint) for name, endpoint in zip("abc", endpoints, strict=False))


class GatewayTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.events: list[str] = []
        self.reactor = Reactor(self.events)
        self.patch(module, "open_broker", lambda settings, now_ms, reactor: Broker(self.events))

    def gateway(self, found: Iterable[Plugin] = (), **settings: Any) -> Gateway:
        """
        A gateway with these plugins that listens on port 9092 by default.
        """
        given = {"listen": listeners("tcp:9092:interface=127.0.0.1"), "broker": "memory:"} | settings
        return Gateway(Settings(**given), self.reactor, now_ms=lambda: START_MS, plugins=found)

    def started(self, found: Iterable[Plugin] = (), **settings: Any) -> Gateway:
        gateway = self.gateway(found, **settings)
        self.successResultOf(Deferred.fromCoroutine(gateway.start()))
        return gateway

    def connect(self, address: IAddress | None = CLIENT, listener: int = 0) -> tuple[Connection, Transport]:
        """
        Connect a client through a listener.
        """
        connection = self.reactor.factories[listener].buildProtocol(address)
        assert connection
        transport = Transport(hostAddress=IPv4Address("TCP", "10.0.0.1", 9092))
        transport.protocol = connection
        connection.makeConnection(transport)
        return connection, transport

    def stop(self, gateway: Gateway) -> Deferred[None]:
        return Deferred.fromCoroutine(gateway.stop())

    def test_clients_are_disconnected_outside_the_cluster(self) -> None:
        """
        Existing and new connections are closed until the gateway is part of it again.
        """
        gateway = self.started()
        _, transport = self.connect()
        assert isinstance(gateway.broker, Broker)
        gateway.broker.become_part_of()
        self.reactor.advance(0)
        assert transport.disconnecting
        assert self.reactor.factories[0].buildProtocol(CLIENT) is None
        gateway.broker.become_part_of(Node(1))
        _, transport = self.connect()
        assert not transport.disconnecting

    def test_ports_are_closed_outside_the_cluster(self) -> None:
        """
        Refused clients look for another gateway; some that are accepted and disconnected return for ever.
        """
        gateway = self.started(listen=listeners("tcp:9092", "tcp:9093"))
        assert isinstance(gateway.broker, Broker)
        self.events.clear()
        gateway.broker.become_part_of()
        assert self.events == ["closed 9092", "closed 9093"]
        gateway.broker.become_part_of(Node(1))
        gateway.broker.become_part_of(Node(1), Node(2))
        assert self.events[2:] == ["opened 9092 again", "opened 9093 again"]

    def test_a_taken_port_is_retried(self) -> None:
        """
        It is retried every second until the gateway stops.
        """
        gateway = self.started()
        assert isinstance(gateway.broker, Broker)
        gateway.broker.become_part_of()
        self.events.clear()
        self.reactor.taken[9092] = OSError(98, "Address already in use")
        with capturedLogs() as logs:
            gateway.broker.become_part_of(Node(1))
            self.reactor.advance(1)
        told = [eventAsText(event, includeTimestamp=False, includeSystem=False) for event in logs]
        assert len(told) == 2
        assert told[0].startswith("cannot listen again; retrying in a second: ")
        assert self.events == []
        del self.reactor.taken[9092]
        self.reactor.advance(1)
        assert self.events == ["opened 9092 again"]
        self.reactor.taken[9092] = OSError(98, "Address already in use")
        gateway.broker.become_part_of()
        gateway.broker.become_part_of(Node(1))
        self.stop(gateway)
        del self.reactor.taken[9092]
        self.events.clear()
        self.reactor.advance(1)
        assert self.events == []

    def test_nothing_is_opened_before_the_start(self) -> None:
        """
        Neither broker nor port is, because a daemon forks in between.
        """
        self.gateway()
        assert self.events == []

    def test_the_broker_starts_before_the_listeners(self) -> None:
        """
        They open in the given order, and the start returns their addresses.
        """
        gateway = self.gateway(listen=listeners("tcp:9092:interface=127.0.0.1", "tcp:0"))
        bound = self.successResultOf(Deferred.fromCoroutine(gateway.start()))
        assert self.events == ["broker started", "opened 9092", "opened 0"]
        assert bound == [Address("127.0.0.1", 9092), Address("0.0.0.0", 50_000)]

    def test_a_stop_has_the_reverse_order(self) -> None:
        """
        New clients are refused, existing ones finish, and then the broker closes.
        """
        gateway = self.started(listen=listeners("tcp:9092", "tcp:9093"))
        connection, transport = self.connect()
        self.events.clear()
        stopped = self.stop(gateway)
        self.reactor.advance(0)
        assert transport.disconnecting
        assert self.events == ["closed 9092", "closed 9093"]
        connection.connectionLost()
        self.successResultOf(stopped)
        assert self.events == ["closed 9092", "closed 9093", "broker stopped"]

    def test_a_stop_waits_for_started_requests(self) -> None:
        """
        The client gets its answer.
        """
        wait: Deferred[CountResponse] = Deferred()
        handler = api(CountRequest, CountResponse, versions="0-3", needs=Free("a test"))(lambda *_: wait)
        gateway = self.started(plugins(handler))
        connection, transport = self.connect()
        connection.dataReceived(b"".join(request_frame(count("orders"), 1, 7, CLIENT_ID)))
        stopped = self.stop(gateway)
        self.reactor.advance(0)
        assert not transport.disconnecting
        wait.callback(CountResponse(topics=[CountResponse.Topic(name="orders", count=1)]))
        self.reactor.advance(0)
        assert read(CountResponse, 1, transport.value()).topics[0].count == 1
        self.assertNoResult(stopped)
        connection.connectionLost()
        self.successResultOf(stopped)

    def test_services_stop_first(self) -> None:
        """
        Otherwise the gateway would wait for clients that wait for a service; a service need not have a stop.
        """

        class Waiting:
            def __init__(self, gateway: GatewayParts) -> None:
                self.answer: Deferred[CountResponse] = Deferred()

            def stop(self) -> None:
                self.answer.callback(CountResponse(topics=[]))

        class Quiet:
            def __init__(self, gateway: GatewayParts) -> None:
                pass

        @api(CountRequest, CountResponse, versions="0-3", needs=Free("a test"))
        def handler(_: CountRequest, context: Context) -> Deferred[CountResponse]:
            context.service(Quiet)
            return context.service(Waiting).answer

        gateway = self.started(plugins(handler))
        connection, transport = self.connect()
        connection.dataReceived(b"".join(request_frame(count("orders"), 1, 7, CLIENT_ID)))
        self.stop(gateway)
        self.reactor.advance(0)
        assert read(CountResponse, 1, transport.value()).topics == []

    def test_slow_clients_are_aborted_at_the_stop(self) -> None:
        """
        The settings limit the time.
        """
        handler = api(CountRequest, CountResponse, versions="0-3", needs=Free("a test"))(lambda *_: Deferred())
        gateway = self.started(plugins(handler), stop_timeout_ms=4_000)
        connection, transport = self.connect()
        connection.dataReceived(b"".join(request_frame(count("orders"), 1, 7, CLIENT_ID)))
        stopped = self.stop(gateway)
        self.reactor.advance(3.9)
        self.assertNoResult(stopped)
        self.reactor.advance(0.2)
        self.successResultOf(stopped)
        assert transport.aborted
        assert self.events[-1] == "broker stopped"

    def test_a_gateway_may_stop_twice_and_unstarted(self) -> None:
        """
        An embedding program stops it in any case.
        """
        gateway = self.gateway()
        self.successResultOf(self.stop(gateway))
        self.successResultOf(self.stop(gateway))
        assert self.reactor.getDelayedCalls() == []

    def test_a_taken_port_fails_the_start(self) -> None:
        """
        The error names the listener and the reason, and everything opened before is closed.
        """
        self.reactor.taken[9093] = OSError(98, "Address already in use")
        gateway = self.gateway(listen=listeners("tcp:9092", "tcp:9093"))
        failure = self.failureResultOf(Deferred.fromCoroutine(gateway.start()), StartError)
        advice = "stop the program that uses it, or listen on another port with --listen"
        assert str(failure.value) == f"b=tcp:9093: the port is in use; {advice}"
        assert self.events == ["broker started", "opened 9092", "closed 9092", "start undone", "broker stopped"]

    def test_the_advice_fits_the_reason(self) -> None:
        """
        A program that uses the port is mentioned only where there may be one.
        """
        for error, reason in (
            (
                OSError(99, "Cannot assign"),
                "this machine has no such address; use one that it has, or no interface=, in",
            ),
            (
                gaierror(-3, "Temporary failure in name resolution"),
                "the host name cannot be resolved (Temporary failure in name resolution); "
                "use an address of this machine in",
            ),
            (
                OSError(13, "Denied"),
                "permission denied; name a port above 1023, or a socket in a folder of this user, with",
            ),
            (OSError(24, "Too many open files"), "Too many open files; name another endpoint with"),
            (OSError("AF_UNIX path too long"), "AF_UNIX path too long; name another endpoint with"),
        ):
            self.reactor.taken[9092] = error
            gateway = self.gateway(listen=listeners("tcp:9092"))
            failure = self.failureResultOf(Deferred.fromCoroutine(gateway.start()), StartError)
            assert str(failure.value) == f"a=tcp:9092: {reason} --listen", error

    def test_a_host_without_an_address_is_a_mistake(self) -> None:
        """
        Unless the name server does not respond, which may pass.
        """
        for number, is_mistake in ((EAI_NONAME, True), (EAI_AGAIN, False)):
            self.reactor.taken[9092] = gaierror(number, "it is not resolved")
            gateway = self.gateway(listen=listeners("tcp:9092"))
            failure = self.failureResultOf(Deferred.fromCoroutine(gateway.start()), StartError)
            assert isinstance(failure.value, StartMistake) is is_mistake, number

    def test_an_endpoint_that_twisted_cannot_open(self) -> None:
        """
        The error has the endpoint's text.
        """
        for endpoint in ("nosuch:9092", "tcp", "tcp:9092:color=red", "tcp:port"):
            gateway = self.gateway(listen=listeners(endpoint))
            failure = self.failureResultOf(Deferred.fromCoroutine(gateway.start()), StartError)
            assert f"a={endpoint} is not an endpoint that Twisted can open" in str(failure.value), endpoint

    def test_a_client_is_served(self) -> None:
        """
        Its requests are answered by the handlers.
        """
        self.started(plugins(api_versions))
        connection, transport = self.connect()
        connection.dataReceived(b"".join(request_frame(ApiVersionsRequest(), 0, 7, CLIENT_ID)))
        [own] = decode(ApiVersionsResponse, 0, transport.value()[8:]).api_keys
        assert (own.api_key, own.min_version, own.max_version) == (18, 0, 4)

    def test_a_connection_knows_its_listener(self) -> None:
        """
        It knows the client's host, our address, and the advertised one.
        """
        self.started(
            listen=listeners("tcp:9092", "tcp:9093"), advertise=(Advertised("b", "kafka.example.org", 19_093),)
        )
        [inside, outside] = [self.connect(listener=listener)[0].session for listener in (0, 1)]
        assert (inside.listener, inside.host, inside.local) == ("a", "10.0.0.7", Address("10.0.0.1", 9092))
        assert inside.advertised is None
        assert (outside.listener, outside.advertised) == ("b", Address("kafka.example.org", 19_093))
        assert inside.principal == "User:ANONYMOUS"

    def test_clients_of_all_kinds_of_sockets(self) -> None:
        """
        An IPv6 client has its host; a client of a Unix socket may have no address.
        """
        self.started()
        assert self.connect(IPv6Address("TCP", "::1", 1))[0].session.host == "::1"
        assert self.connect(UNIXAddress(b"/tmp/client"))[0].session.host == "localhost"
        assert self.connect(None)[0].session.host == ""

    def test_connections_and_request_memory_are_reported(self) -> None:
        gateway = self.started()
        connection, _ = self.connect()
        self.connect()
        connection.dataReceived((100).to_bytes(4, "big") + b"half")
        assert gateway.stats() == {"connections": 2, "request_bytes": 100}
        connection.connectionLost()
        assert gateway.stats() == {"connections": 1, "request_bytes": 0}

    def test_the_reason_of_a_disconnect_is_logged(self) -> None:
        """
        It is remembered, too: other bytes than Kafka's, or an unsupported request.
        """
        gateway = self.started()
        with capturedLogs() as logged:
            for data in (b"\0\0\0\2xx", b"".join(request_frame(count("orders"), 1, 7, CLIENT_ID))):
                connection, transport = self.connect()
                connection.dataReceived(data)
                assert transport.disconnecting
        malformed, closed = gateway.reasons.latest(10)
        assert (malformed.kind, closed.kind) == (ReasonKind.MALFORMED, ReasonKind.CLOSED)
        assert closed.message == "the API with key 30000 is not served here"
        assert (closed.host, closed.listener, closed.when_ms) == ("10.0.0.7", "a", START_MS)
        texts = [eventAsText(event) for event in logged]
        for reason in (malformed, closed):
            assert any(f"10.0.0.7 on a closed: {reason.message}" in text for text in texts)

    def test_limits_are_settings(self) -> None:
        """
        A frame above the largest request ends its connection.
        """
        self.started(max_request_bytes=1000, request_memory_bytes=5000)
        for size, ends in ((1000, False), (1001, True)):
            connection, transport = self.connect()
            connection.dataReceived(size.to_bytes(4, "big") + b"...")
            assert transport.disconnecting is ends, size

    def test_a_silent_client_is_disconnected(self) -> None:
        """
        The settings limit the time.
        """
        self.started(max_idle_ms=60_000)
        _, transport = self.connect()
        self.reactor.pump([5] * 11)
        assert not transport.aborted
        self.reactor.pump([5] * 3)
        assert transport.aborted

    def test_handlers_know_the_gateway(self) -> None:
        """
        They see its settings, clocks, authorizer and advertised versions.
        """
        contexts: list[Context] = []

        @api(CountRequest, CountResponse, versions="0-3", needs=Free("a test"))
        def look(request: CountRequest, context: Context) -> CountResponse:
            contexts.append(context)
            return CountResponse()

        self.started(plugins(look), num_partitions=7)
        self.connect()[0].dataReceived(b"".join(request_frame(count(), 1, 7, CLIENT_ID)))
        [context] = contexts
        assert context.settings.num_partitions == 7
        assert context.clock is self.reactor
        assert context.now_ms == START_MS
        assert context.served == {30_000: (range(4), "Count")}

    def test_the_authorizer_decides(self) -> None:
        """
        Without one everything is allowed.
        """
        assert isinstance(self.gateway().parts.authorizer, AllowAll)
        authorizer = Denying()
        gateway = Gateway(Settings(broker="memory:"), self.reactor, authorizer=authorizer, plugins=())
        assert gateway.parts.authorizer is authorizer

    def test_plugins_are_discovered_unless_given(self) -> None:
        """
        The settings name the packages.
        """
        asked: list[tuple[str, ...]] = []

        def discover(packages: tuple[str, ...]) -> list[Plugin]:
            asked.append(packages)
            return plugins(api_versions)

        self.patch(module, "discover", discover)
        gateway = Gateway(Settings(broker="memory:", handlers=("acme", "house_rules")), self.reactor)
        assert asked == [("acme", "house_rules")]
        assert [row.api for row in gateway.registry.rows()] == ["ApiVersions"]
        Gateway(Settings(broker="memory:"), self.reactor, plugins=())
        assert len(asked) == 1

    def test_conflicting_plugins_make_no_gateway(self) -> None:
        """
        The error is raised before anything is opened.
        """
        mine = api(ApiVersionsRequest, ApiVersionsResponse, versions="0", needs=Free("a test"))(lambda *_: None)
        with pytest.raises(PluginError, match="both serve ApiVersions v0"):
            self.gateway(plugins(api_versions, mine))
        assert self.events == []


def test_an_unknown_broker_makes_no_gateway() -> None:
    """
    The message lists the known ones.
    """
    with pytest.raises(SettingsError, match="write memory:"):
        Gateway(Settings(broker="nosuch:x"), Reactor([]), plugins=())
