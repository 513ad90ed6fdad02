"""
Has every partition of a transaction told how it ended, wherever it is led, however often that must be tried.

A partition that is not there yet is tried again, with pauses that grow. One that was deleted needs no marker.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.logger import Logger, LogLevel

from kgateway.context import GatewayParts
from kgateway.coordinating.turns import by_turns, in_pieces, outcome_of, pause
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.transactions.coding import by_topic
from kgateway.transactions.markers import Ending, Markers
from kgateway.transactions.state import Place
from kgateway.wire.errors import ErrorCode, KafkaError

PIECE = 50  # partitions in a turn; a few milliseconds
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
_VERSION = WriteTxnMarkersRequest.__spec__.versions[-1]
_Marker = WriteTxnMarkersRequest.Marker
_Outcomes = dict[Place, ErrorCode]

# What is not there now, and may be later; beside what Kafka calls retriable.
_PASSING = {ErrorCode.BROKER_NOT_AVAILABLE}
# By these a partition knows better than the coordinator, who must not go on.
_OVERRULED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
# Logs in which there can be no transaction.
_NEEDLESS = {ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}


class Sender:
    """
    Sends the markers of one transaction after the other, or of several at a time.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._broker = gateway.broker
        self._clock = gateway.clock
        self._markers = gateway.service(Markers)

    async def send(self, places: Iterable[Place], ending: Ending, done: Callable[[Set[Place]], None]) -> None:
        """
        Return when every partition has the marker; `done` is called for some after the others. A KafkaError where one
        has it from a later coordinator.
        """
        left = set(places)
        for pause_s in pauses():
            unsettled: _Outcomes = {}
            async for piece in by_turns(in_pieces(sorted(left), PIECE), self._clock):
                outcomes = await self._attempt(piece, ending)
                _check(outcomes, ending)
                settled = {place for place, code in outcomes.items() if code in _NEEDLESS}
                left -= settled
                done(settled)
                unsettled |= {place: code for place, code in outcomes.items() if place not in settled}
            if not left:
                return
            self._tell(unsettled, ending)
            await pause(self._clock, pause_s)

    def _tell(self, unsettled: _Outcomes, ending: Ending) -> None:
        """
        Say so in one line, with the worst of it.
        """
        passing = {place for place, code in unsettled.items() if code.retriable or code in _PASSING}
        place = next((place for place in unsettled if place not in passing), next(iter(unsettled)))
        level = LogLevel.info if place in passing else LogLevel.error
        text = "{count} partitions have no marker of {producer} yet, as {topic}-{index}: {error}"
        told = {"producer": ending.producer, "topic": place.topic, "index": place.partition}
        self._log.emit(level, text, count=len(unsettled), error=unsettled[place].name, **told)

    async def _attempt(self, places: Iterable[Place], ending: Ending) -> _Outcomes:
        by_leader = defaultdict[int | None, list[Place]](list)
        for place in places:
            by_leader[self._leader(place)].append(place)
        told = [Deferred.fromCoroutine(self._at(leader, those, ending)) for leader, those in by_leader.items()]
        try:
            found = await gatherResults(told, consumeErrors=True)
        except FirstError as first:
            first.subFailure.raiseException()
        return {place: code for outcomes in found for place, code in outcomes.items()}

    def _leader(self, place: Place) -> int | None:
        """
        Which node leads it; none where it was deleted.
        """
        topic = self._broker.view().topics.get(place.topic)
        if topic is None or place.partition >= len(topic.partitions):
            return None
        return topic.partitions[place.partition].leader_id

    async def _at(self, leader: int | None, places: list[Place], ending: Ending) -> _Outcomes:
        if leader is None:
            return dict.fromkeys(places, ErrorCode.NONE)
        if leader == self._broker.node_id:
            started = [(place, self._write(place, ending)) for place in places]
            return {place: code if isinstance(code, ErrorCode) else await code for place, code in started}
        return await self._ask(leader, places, ending)

    def _write(self, place: Place, ending: Ending) -> Deferred[ErrorCode] | ErrorCode:
        try:
            safe = self._markers.write(place, ending)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE if safe is None else Deferred.fromCoroutine(_code_of(outcome_of(safe)))

    async def _ask(self, leader: int, places: list[Place], ending: Ending) -> _Outcomes:
        node = self._broker.view().node(leader)
        if node is None:
            return dict.fromkeys(places, ErrorCode.LEADER_NOT_AVAILABLE)
        try:
            answer = await self._broker.peers.ask(node, _request(places, ending), _VERSION)
        except KafkaError as error:
            return dict.fromkeys(places, error.code)
        assert isinstance(answer, WriteTxnMarkersResponse)
        return dict.fromkeys(places, ErrorCode.LEADER_NOT_AVAILABLE) | _answered(answer)


def pauses() -> Iterator[float]:
    """
    How long to wait after each attempt, without an end.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _check(outcomes: _Outcomes, ending: Ending) -> None:
    for place, code in outcomes.items():
        if code in _OVERRULED:
            raise KafkaError(code, f"{place.topic}-{place.partition} takes no marker of {ending.producer}")


async def _code_of(safe: Deferred[None]) -> ErrorCode:
    try:
        await safe
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def _request(places: list[Place], ending: Ending) -> WriteTxnMarkersRequest:
    marker = _Marker(
        producer_id=ending.producer.producer_id,
        producer_epoch=ending.producer.epoch,
        transaction_result=ending.commits,
        topics=[_Marker.Topic(name=one.topic, partition_indexes=one.partition_ids) for one in by_topic(places)],
        coordinator_epoch=ending.coordinator_epoch,
        transaction_version=ending.transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def _answered(answer: WriteTxnMarkersResponse) -> _Outcomes:
    return {
        Place(topic.name, one.partition_index): ErrorCode(one.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for one in topic.partitions
    }
