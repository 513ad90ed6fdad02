"""
Fetch sessions.
"""

from collections.abc import Iterable
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.fetch import sessions as module
from kgateway.fetch.sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    FetchContext,
    FetchKey,
    FetchPartition,
    FetchSessions,
    RequestPartition,
    ResponsePartition,
)
from kgateway.messages.fetch import FetchRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE, Uuid
from tests.serving import Serving

TWO_MINUTES_S = 120
LARGEST = (1 << 31) - 1


def ask(offset: int = 0, *, index: int = 0, epoch: int = -1, max_bytes: int = 100) -> RequestPartition:
    return RequestPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=epoch
    )


def answer(wanted: FetchPartition, high_watermark: int = 5, **more: Any) -> ResponsePartition:
    values = {"error_code": 0, "log_start_offset": 0, "records": [], **more}
    return ResponsePartition(partition_index=wanted.index, high_watermark=high_watermark, **values)


class SessionsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.make(most=10)

    def make(self, most: int) -> None:
        serving = Serving(fetch_sessions=most)
        self.clock: Clock = serving.clock
        self.sessions = serving.parts.service(FetchSessions)

    def turn(
        self,
        session_id: int = NO_SESSION,
        epoch: int = FIRST_EPOCH,
        asked: Iterable[RequestPartition] = (),
        *,
        forget: Iterable[int] = (),
        topic: str | Uuid = "orders",
        more: Iterable[FetchRequest.Topic] = (),
    ) -> FetchContext:
        by_id = isinstance(topic, Uuid)
        called: dict[str, Any] = {"topic_id": topic} if by_id else {"topic": topic}
        topics = [FetchRequest.Topic(**called, partitions=list(asked)), *more]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=topics)
        request.forgotten_topics_data = [FetchRequest.ForgottenTopic(**called, partitions=list(forget))]
        return self.sessions.context_of(request, by_id)

    def tell(self, turn: FetchContext, **more: Any) -> tuple[int, list[int]]:
        """
        The session and the partitions in the response, with the same result for all.
        """
        session_id, told = turn.respond([(wanted, answer(wanted, **more)) for wanted in turn.wanted])
        return session_id, [one.partition_index for _, one in told]

    def open(self, partitions: int = 1, **more: Any) -> int:
        session_id, _ = self.tell(self.turn(asked=[ask(index=index) for index in range(partitions)], **more))
        return session_id

    def code(self, *args: Any, **more: Any) -> ErrorCode:
        with self.assertRaises(KafkaError) as caught:
            self.turn(*args, **more)
        code: ErrorCode = caught.exception.code
        return code

    def gone(self, session_id: int) -> bool:
        try:
            self.turn(session_id, 1)
        except KafkaError as error:
            return error.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return False


def keys(turn: FetchContext) -> list[FetchKey]:
    return [wanted.key for wanted in turn.wanted]


class OpeningTests(SessionsTestCase):
    def test_none(self) -> None:
        """
        A fetch with epoch -1 has no session: its response has all partitions of the request.
        """
        turn = self.turn(epoch=FINAL_EPOCH, asked=[ask(3, index=1, epoch=7, max_bytes=9), ask(index=0)])
        first = turn.wanted[0]
        self.assertEqual([("orders", 1), ("orders", 0)], keys(turn))
        self.assertEqual((3, 7, 9), (first.offset, first.leader_epoch, first.max_bytes))
        self.assertEqual((NO_SESSION, [1, 0]), self.tell(turn))

    def test_opened(self) -> None:
        """
        The response to epoch 0 has all partitions, and the id of a new session.
        """
        session_id, told = self.tell(self.turn(asked=[ask(index=0), ask(index=1)]))
        self.assertEqual([0, 1], told)
        self.assertEqual([("orders", 0), ("orders", 1)], keys(self.turn(session_id, 1)))

    def test_ids(self) -> None:
        """
        Ids are positive and differ; an id in use is drawn again.
        """
        drawn = [0, 0, LARGEST - 1]
        self.patch(module, "randbelow", lambda below: drawn.pop(0) if below == LARGEST else None)
        self.assertEqual([1, LARGEST], [self.open(), self.open()])

    def test_opened_again(self) -> None:
        """
        A fetch with epoch 0 and a session's id ends that session.
        """
        first = self.open()
        self.tell(self.turn(first, FIRST_EPOCH, [ask()]))
        self.assertTrue(self.gone(first))

    def test_closed(self) -> None:
        """
        A fetch with epoch -1 and a session's id ends it, and opens none.
        """
        first = self.open()
        self.assertEqual((NO_SESSION, [0]), self.tell(self.turn(first, FINAL_EPOCH, [ask()])))
        self.assertTrue(self.gone(first))

    def test_named_twice(self) -> None:
        """
        A repeated partition is read once, with its last settings.
        """
        [wanted] = self.turn(asked=[ask(1), ask(2)]).wanted
        self.assertEqual(2, wanted.offset)


class EpochTests(SessionsTestCase):
    def test_an_unknown_session_is_refused(self) -> None:
        self.assertEqual(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, self.code(77, 1))

    def test_counted(self) -> None:
        """
        Each fetch of a session has the next epoch; any other is refused, and changes nothing.
        """
        session_id = self.open()
        self.tell(self.turn(session_id, 1))
        for epoch in (1, 3):
            self.assertEqual(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.code(session_id, epoch, [ask(index=9)]))
        self.assertEqual([("orders", 0)], keys(self.turn(session_id, 2)))

    def test_epoch_1_follows_the_largest(self) -> None:
        session_id = self.open()
        self.sessions._sessions[session_id].epoch = LARGEST
        self.tell(self.turn(session_id, LARGEST))
        self.tell(self.turn(session_id, 1))

    def test_overtaken(self) -> None:
        """
        A fetch that waited while its session advanced is refused.
        """
        session_id = self.open()
        waiting = self.turn(session_id, 1)
        self.tell(self.turn(session_id, 2))
        with self.assertRaises(KafkaError) as caught:
            self.tell(waiting)
        self.assertEqual(ErrorCode.INVALID_FETCH_SESSION_EPOCH, caught.exception.code)

    def test_names_and_ids(self) -> None:
        """
        A session of topic names cannot continue with ids, or the reverse.
        """
        for began, goes_on in (("orders", ONE), (ONE, "orders")):
            session_id = self.open(topic=began)
            self.assertEqual(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, self.code(session_id, 1, topic=goes_on))


class PartitionsTests(SessionsTestCase):
    def test_changed(self) -> None:
        """
        A repeated partition continues at its new offset, a new one is added, and the others do not change.
        """
        session_id = self.open(2)
        turn = self.turn(session_id, 1, [ask(8, index=1), ask(4, index=2)])
        self.assertEqual([(0, 0), (1, 8), (2, 4)], [(wanted.index, wanted.offset) for wanted in turn.wanted])

    def test_forgotten(self) -> None:
        """
        Forgotten partitions are not read any more; forgetting a missing one is no error.
        """
        for topic in ("orders", ONE):
            session_id = self.open(2, topic=topic)
            self.assertEqual([(topic, 1)], keys(self.turn(session_id, 1, forget=[0, 5], topic=topic)), topic)

    def test_a_session_without_partitions_ends(self) -> None:
        session_id = self.open()
        turn = self.turn(session_id, 1, forget=[0])
        self.assertEqual((NO_SESSION, []), self.tell(turn))
        self.assertTrue(self.gone(session_id))

    def test_same_number_in_another_topic(self) -> None:
        """
        Partitions are keyed by topic and index.
        """
        other = FetchRequest.Topic(topic="other", partitions=[ask()])
        turn = self.turn(asked=[ask()], more=[other])
        self.assertEqual([("orders", 0), ("other", 0)], keys(turn))


class TellingTests(SessionsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.session = self.open(2)
        self.epoch = 0

    def next(self, **more: Any) -> list[int]:
        """
        The partitions in the next response, if partition 0 has this result, and 1 the previous one.
        """
        self.epoch += 1
        turn = self.turn(self.session, self.epoch)
        answers = [(wanted, answer(wanted, **(more if wanted.index == 0 else {}))) for wanted in turn.wanted]
        session_id, told = turn.respond(answers)
        self.assertEqual(self.session, session_id)
        return [one.partition_index for _, one in told]

    def test_unchanged_partitions_are_left_out(self) -> None:
        self.assertEqual([], self.next())

    def test_records_are_sent(self) -> None:
        self.assertEqual([0], self.next(records=[b"batch"]))

    def test_watermark(self) -> None:
        """
        A high watermark that moved is sent once.
        """
        self.assertEqual([[0], []], [self.next(high_watermark=6), self.next(high_watermark=6)])

    def test_log_start(self) -> None:
        """
        A log start offset that moved is sent once.
        """
        self.assertEqual([[0], []], [self.next(log_start_offset=1), self.next(log_start_offset=1)])

    def test_errors(self) -> None:
        """
        An error is sent each time, and once it is over.
        """
        failing: dict[str, Any] = {"error_code": 3, "high_watermark": -1, "log_start_offset": -1}
        self.assertEqual([[0], [0], [0], []], [self.next(**failing), self.next(**failing), self.next(), self.next()])

    def test_divergence(self) -> None:
        """
        A diverging epoch is sent each time.
        """
        diverging = ResponsePartition.DivergingEpoch(epoch=1, end_offset=2)
        self.assertEqual([[0], [0]], [self.next(diverging_epoch=diverging), self.next(diverging_epoch=diverging)])

    def test_rotation(self) -> None:
        """
        A partition with records is last in the next response; one with other changes keeps its place.
        """
        self.next(high_watermark=7)
        self.assertEqual([0, 1], [wanted.index for wanted in self.turn(self.session, 2).wanted])
        self.epoch = 2
        self.next(records=[b"batch"])
        self.assertEqual([1, 0], [wanted.index for wanted in self.turn(self.session, 4).wanted])


class RoomTests(SessionsTestCase):
    def setUp(self) -> None:
        self.make(most=2)

    def test_full(self) -> None:
        """
        Without room a fetch gets all partitions, and no session.
        """
        kept = [self.open(), self.open()]
        self.assertEqual((NO_SESSION, [0]), self.tell(self.turn(asked=[ask()])))
        self.assertFalse(any(self.gone(session_id) for session_id in kept))

    def test_sessions_can_be_disabled(self) -> None:
        self.make(most=0)
        self.assertEqual(NO_SESSION, self.open())

    def test_unused(self) -> None:
        """
        A session unused for two minutes makes room; the longest unused one is first.
        """
        first, second = self.open(5), self.open()
        self.clock.advance(1)
        self.turn(first, 1)
        self.clock.advance(TWO_MINUTES_S - 1)
        self.assertEqual(NO_SESSION, self.open())
        self.clock.advance(0.5)
        self.assertNotEqual(NO_SESSION, self.open())
        self.assertEqual(
            [True, False], [self.gone(second), self.code(first, 9) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND]
        )

    def test_smaller(self) -> None:
        """
        A larger session replaces the smallest one that is older than two minutes, however used.
        """
        large, small = self.open(3), self.open(2)
        self.clock.advance(TWO_MINUTES_S)
        for session_id in (large, small):
            self.turn(session_id, 1)
        self.assertEqual(NO_SESSION, self.open(3))
        self.clock.advance(1)
        self.assertEqual(NO_SESSION, self.open(2))
        self.assertNotEqual(NO_SESSION, self.open(3))
        self.assertEqual(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, self.code(small, 2))
        self.assertEqual(3, len(self.turn(large, 2).wanted))

    def test_young_sessions_are_kept(self) -> None:
        """
        Used sessions younger than two minutes are kept, whatever their size.
        """
        self.open(1)
        self.clock.advance(TWO_MINUTES_S)
        young = self.open(1)
        self.clock.advance(1)
        self.assertNotEqual(NO_SESSION, self.open(9))
        self.assertEqual(NO_SESSION, self.open(9))
        self.assertFalse(self.gone(young))
