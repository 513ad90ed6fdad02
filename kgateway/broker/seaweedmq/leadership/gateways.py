"""
The gateways of a cluster. Each has a file in the filer that says where clients reach it:

    /topics/kafka/.meta/kgateway/gateways/NODE_ID

A standby rewrites it every few seconds, with another number each time: a changing number shows that it is alive. A
timestamp would not, because clocks differ. The leader's lease shows that it is alive; it only writes its file again if
that has changed.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import uuid4

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.deferreds import within
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.cluster.view import Address, Node
from kgateway.config.hosts import is_host
from kgateway.log_messages import BAD_GATEWAY_FILE, GATEWAYS_UNREAD, NODE_ID_TWICE

LOOK_S = 2.0
GONE_S = 9.0  # without another number
_STOP_S = 1.0


class _SeenGateway(NamedTuple):
    """
    A gateway as its file describes it, and since when the file has been so.
    """

    node: Node
    number: int
    since: float
    process_id: str  # of the process that wrote it: random, the same until it ends


class Gateways:
    """
    This gateway, and the others as it knows them.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayRuntime, node_id: int, changed: Callable[[], None]) -> None:
        self.own = Node(node_id)
        self._is_standby = False
        self._leader_has_our_id = False  # the leader is another gateway with this one's id: the file is the leader's
        self._gateway = gateway
        self._changed = changed
        self._folder = f"{gateway.folder}/gateways"
        self._seen: dict[int, _SeenGateway] = {}
        self._alive: set[int] = set()
        self._strange: dict[str, bytes] = {}  # files of no gateway
        self._process_id = uuid4().hex
        self._number = 0
        self._last_written = self._file_content = b""  # of this gateway's file
        self._twin: Node | None = None
        self._problem = ""
        self._rounds = LoopingCall(lambda: Deferred.fromCoroutine(self._round()))
        self._rounds.clock = gateway.reactor
        self._last_round_over: Deferred[None] = Deferred()

    def announce(self, addresses: Mapping[str, Address]) -> None:
        """
        From now on show the other gateways where clients reach this one, by listener.
        """
        self.own = Node(self.own.id, addresses=addresses)
        self._last_round_over = self._rounds.start(LOOK_S).addErrback(self._failed).addCallback(lambda _: None)
        self._changed()

    def stand_by(self, *, leader_has_our_id: bool) -> None:
        self._is_standby, self._leader_has_our_id = not leader_has_our_id, leader_has_our_id

    def end_standby(self) -> None:
        self._is_standby = self._leader_has_our_id = False

    def known(self, node_id: int) -> Node | None:
        seen = self._seen.get(node_id)
        return seen and seen.node

    def shared_with(self, other: Node | None) -> str:
        """
        The addresses that this gateway and another one both claim.
        """
        theirs = set(other.addresses.values()) if other else set()
        return " and ".join(sorted(map(str, theirs & set(self.own.addresses.values()))))

    def nodes(self, leader: Node | None = None) -> tuple[Node, ...]:
        """
        The gateways that clients may ask: this one, all standbys, and the leader if that is another one.
        """
        standbys = {node_id: self._seen[node_id].node for node_id in self._alive}
        nodes = {**standbys, self.own.id: self.own}
        if leader:
            nodes[leader.id] = leader
        return tuple(nodes[node_id] for node_id in sorted(nodes))

    async def refresh(self) -> None:
        """
        Read the files of the other gateways.
        """
        entries = await (await self._gateway.seaweed.filer()).all_entries(self._folder)
        self._file_content = next((entry.content for entry in entries if entry.name == str(self.own.id)), b"")
        before = self._known, self._alive
        now, read = self._gateway.reactor.seconds(), [self._read(entry.name, entry.content) for entry in entries]
        self._seen = {
            seen.node.id: self._with_first_sight(seen) for seen in read if seen and seen.node.id != self.own.id
        }
        self._alive = {node_id for node_id, seen in self._seen.items() if now - seen.since < GONE_S}
        if before != (self._known, self._alive):
            self._changed()

    async def stop(self) -> None:
        if self._rounds.running:
            self._rounds.stop()
            await within(self._gateway.reactor, _STOP_S, Deferred.fromCoroutine(self._delete_own_file()))

    @property
    def _path(self) -> str:
        return f"{self._folder}/{self.own.id}"

    @property
    def _known(self) -> dict[int, Node]:
        return {node_id: seen.node for node_id, seen in self._seen.items()}

    async def _round(self) -> None:
        try:
            await self.refresh()
            if self._is_standby or self._file_content != self._last_written or not self._last_written:
                self._warn_of_twin()
                if not self._leader_has_our_id:
                    await self._write_own_file()
        except CLUSTER_ERRORS as error:
            if not self._problem:
                self._log.info("cannot read the files of other gateways: {error}", error=error)
            self._problem = str(error)
        else:
            self._problem = ""

    async def _delete_own_file(self) -> None:
        await self._last_round_over  # it could write the file again
        try:
            await self.refresh()
            if self._file_content == self._last_written:  # else there is another gateway of this id
                await (await self._gateway.seaweed.filer()).delete(self._path)
        except CLUSTER_ERRORS as error:
            self._log.info("cannot delete the file of this gateway: {error}", error=error)

    async def _write_own_file(self) -> None:
        self._number += 1
        listeners = {name: [address.host, address.port] for name, address in self.own.addresses.items()}
        content = json.dumps({"number": self._number, "listeners": listeners, "mark": self._process_id}).encode()
        await (await self._gateway.seaweed.filer()).write(self._path, content)
        self._last_written = content

    def _warn_of_twin(self) -> None:
        """
        Warn of another gateway with this one's id: it has written the file since this gateway did.
        """
        twin = self._read(str(self.own.id), self._file_content) if self._last_written and self._file_content else None
        if twin and twin.process_id != self._process_id and twin.node != self._twin:
            self._log.warn(NODE_ID_TWICE, at=" and ".join(map(str, twin.node.addresses.values())), id=self.own.id)
            self._twin = twin.node

    def _read(self, name: str, content: bytes) -> _SeenGateway | None:
        """
        The gateway that a file describes; `None` if it is not the file of a gateway.
        """
        try:
            fields = json.loads(content)
            addresses = {str(name): Address(str(host), int(port)) for name, (host, port) in fields["listeners"].items()}
            node, process_id = Node(int(name), addresses=addresses), str(fields.get("mark"))
            seen = _SeenGateway(node, fields["number"], self._gateway.reactor.seconds(), process_id)
            if str(node.id) != name or not _is_possible(node):
                raise ValueError("the node id, a host name or a port number is invalid")
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
            if self._strange.get(name) != content:
                self._log.warn(BAD_GATEWAY_FILE, path=f"{self._folder}/{name}", error=error)
            self._strange[name] = content
            return None
        return seen

    def _with_first_sight(self, seen: _SeenGateway) -> _SeenGateway:
        before = self._seen.get(seen.node.id)
        return before if before and (before.node, before.number) == (seen.node, seen.number) else seen

    def _failed(self, failure: Failure) -> None:
        self._log.failure(GATEWAYS_UNREAD, failure)


def _is_possible(node: Node) -> bool:
    addresses = node.addresses.values()
    return 0 <= node.id < 1 << 31 and all(0 < each.port < 1 << 16 and is_host(each.host) for each in addresses)
