"""
The gateways before a cluster. Each has a file in the filer that says where clients reach it:

    /topics/kafka/.meta/kgateway/gateways/NODE_ID

One that waits writes it anew every few seconds, with another number each time: that it is alive is seen by the number,
for clocks may differ. The one that owns the topics is known by other means, and sees to it that its file is as it was.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import uuid4

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.patience import at_most
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.site import Site
from kgateway.cluster.view import Address, Node
from kgateway.config.hosts import is_host

LOOK_S = 2.0
GONE_S = 9.0  # without another number
_STOP_S = 1.0


class _Seen(NamedTuple):
    """
    A gateway as its file tells of it, and since when it has told so.
    """

    node: Node
    number: int
    since: float
    mark: str  # of the process that has told it


class Gateways:
    """
    This one, and the others as it knows them.
    """

    _log = Logger()

    def __init__(self, site: Site, node_id: int, changed: Callable[[], None]) -> None:
        self.own = Node(node_id)
        self.is_waiting = False
        self.owner_has_its_id = False  # though it is another one: the file is that one's
        self._site = site
        self._changed = changed
        self._folder = f"{site.folder}/gateways"
        self._seen: dict[int, _Seen] = {}
        self._alive: set[int] = set()
        self._strange: dict[str, bytes] = {}  # files that tell of no gateway
        self._mark = uuid4().hex  # of this process
        self._number = 0
        self._told = self._found = b""  # by this gateway, and what is there in its place
        self._twin: Node | None = None
        self._problem = ""
        self._rounds = LoopingCall(lambda: Deferred.fromCoroutine(self._round()))
        self._rounds.clock = site.reactor

    def announce(self, addresses: Mapping[str, Address]) -> None:
        """
        Tell from now on that clients reach this gateway there, by listener.
        """
        self.own = Node(self.own.id, addresses=addresses)
        self._rounds.start(LOOK_S).addErrback(self._failed)
        self._changed()

    def known(self, node_id: int) -> Node | None:
        """
        The other gateway of this id, be it alive or not.
        """
        seen = self._seen.get(node_id)
        return seen and seen.node

    def shared_with(self, other: Node | None) -> str:
        """
        The addresses that this gateway and another one both say are theirs.
        """
        theirs = set(other.addresses.values()) if other else set()
        return " and ".join(sorted(map(str, theirs & set(self.own.addresses.values()))))

    def nodes(self, *owner: Node) -> tuple[Node, ...]:
        """
        Those that clients may ask: this one, all others that wait, and the owner if that is another one.
        """
        waiting = {node_id: self._seen[node_id].node for node_id in self._alive}
        found = {**waiting, self.own.id: self.own, **{node.id: node for node in owner}}
        return tuple(found[node_id] for node_id in sorted(found))

    async def look(self) -> None:
        """
        Read what is told.
        """
        entries = await (await self._site.seaweed.filer()).all_entries(self._folder)
        self._found = next((entry.content for entry in entries if entry.name == str(self.own.id)), b"")
        before = self._known, self._alive
        now, told = self._site.reactor.seconds(), [self._read(entry.name, entry.content) for entry in entries]
        self._seen = {seen.node.id: self._since_when(seen) for seen in told if seen and seen.node.id != self.own.id}
        self._alive = {node_id for node_id, seen in self._seen.items() if now - seen.since < GONE_S}
        if before != (self._known, self._alive):
            self._changed()

    async def stop(self) -> None:
        """
        This gateway is there no more.
        """
        if self._rounds.running:
            self._rounds.stop()
            await at_most(self._site.reactor, _STOP_S, Deferred.fromCoroutine(self._tell_no_more()))

    @property
    def _path(self) -> str:
        return f"{self._folder}/{self.own.id}"

    @property
    def _known(self) -> dict[int, Node]:
        return {node_id: seen.node for node_id, seen in self._seen.items()}

    async def _round(self) -> None:
        try:
            await self.look()
            if self.is_waiting or self._found != self._told or not self._told:
                self._warn_of_twin()
                if not self.owner_has_its_id:
                    await self._tell()
        except CLUSTERS_ERRORS as error:
            if not self._problem:
                self._log.info("the other gateways cannot be seen: {error}", error=error)
            self._problem = str(error)
        else:
            self._problem = ""

    async def _tell_no_more(self) -> None:
        try:
            await self.look()
            if self._found == self._told:  # else there is another gateway of this id
                await (await self._site.seaweed.filer()).delete(self._path)
        except CLUSTERS_ERRORS as error:
            self._log.info("the file of this gateway is left behind: {error}", error=error)

    async def _tell(self) -> None:
        self._number += 1
        listeners = {name: [address.host, address.port] for name, address in self.own.addresses.items()}
        content = json.dumps({"number": self._number, "listeners": listeners, "mark": self._mark}).encode()
        await (await self._site.seaweed.filer()).write(self._path, content)
        self._told = content

    def _warn_of_twin(self) -> None:
        """
        Whoever has written here since this gateway did has its id.
        """
        twin = self._read(str(self.own.id), self._found) if self._told and self._found else None
        if twin and twin.mark != self._mark and twin.node != self._twin:
            told = "{at} has the node id {id}, as this gateway has; give each a --node-id of its own"
            self._log.warn(told, at=" and ".join(map(str, twin.node.addresses.values())), id=self.own.id)
            self._twin = twin.node

    def _read(self, name: str, content: bytes) -> _Seen | None:
        """
        What a file tells; nothing where it is none of ours.
        """
        try:
            told = json.loads(content)
            addresses = {str(name): Address(str(host), int(port)) for name, (host, port) in told["listeners"].items()}
            node, mark = Node(int(name), addresses=addresses), str(told.get("mark"))
            seen = _Seen(node, told["number"], self._site.reactor.seconds(), mark)
            if str(node.id) != name or not _is_possible(node):
                raise ValueError("no node has such an id, or no host such a name, or no port such a number")
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
            if self._strange.get(name) != content:
                self._log.warn("{path} tells of no gateway: {error}", path=f"{self._folder}/{name}", error=error)
            self._strange[name] = content
            return None
        return seen

    def _since_when(self, seen: _Seen) -> _Seen:
        before = self._seen.get(seen.node.id)
        return before if before and (before.node, before.number) == (seen.node, seen.number) else seen

    def _failed(self, failure: Failure) -> None:
        self._log.failure("the other gateways are looked for no more", failure)


def _is_possible(node: Node) -> bool:
    addresses = node.addresses.values()
    return 0 <= node.id < 1 << 31 and all(0 < each.port < 1 << 16 and is_host(each.host) for each in addresses)
