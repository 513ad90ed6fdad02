"""
Long work on records in slices.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.conversion.slices import AT_ONCE_MAX, SLICE_S, IncomingSlices, OutgoingSlices, Slices
from kgateway.records.slices import Steps
from tests.serving import Serving


class SlicesTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        serving = Serving()
        self.clock: Clock = serving.clock
        self.calls: list[tuple[Callable[[], Any], Deferred[Any]]] = []  # steps that are to run in a thread
        serving.parts.in_thread = self.in_thread
        self.parts = serving.parts
        self.slices = serving.parts.service(Slices)
        self.taken: list[str] = []

    def in_thread(self, call: Callable[[], Any]) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        self.calls.append((call, done))
        return done

    def turn(self) -> None:
        """
        Run a turn of the reactor, in which only work takes time; calls made during it remain for the next.
        """
        due, self.clock.calls = self.clock.calls, []
        for call in due:
            call.called = 1
            call.func(*call.args, **call.kw)

    def work(self, name: str, count: int, step_s: float = SLICE_S) -> Steps[str]:
        """
        Work of this many steps, each of which takes a while.
        """
        for _ in range(count):
            self.taken.append(name)
            self.clock.rightNow += step_s
            yield None
        return name

    def threaded(self, name: str, call: Callable[[], Any]) -> Steps[Any]:
        self.taken.append(name)
        come = yield call
        self.taken.append(name)
        return come


class SliceTests(SlicesTestCase):
    def test_others_go_on_between_slices(self) -> None:
        """
        Long work runs one slice per turn of the reactor, and none where it was requested.
        """
        done = self.slices.do(self.work("a", 3))
        self.assertEqual([], self.taken)
        for steps in (1, 2, 3):
            self.assertNoResult(done)
            self.turn()
            self.assertEqual(steps, len(self.taken))
        self.turn()
        self.assertEqual("a", self.successResultOf(done))

    def test_short_steps_share_a_slice(self) -> None:
        """
        A slice has as many steps as fit its time.
        """
        done = self.slices.do(self.work("a", 8, SLICE_S / 4))
        self.turn()
        self.assertEqual(4, len(self.taken))
        self.turn()
        self.turn()
        self.assertEqual("a", self.successResultOf(done))

    def test_all_work_takes_turns(self) -> None:
        """
        A turn of the reactor runs one slice, however much work there is; pieces of work take turns.
        """
        long, short = self.slices.do(self.work("a", 9)), self.slices.do(self.work("b", 2))
        for _ in range(6):
            self.turn()
        self.assertEqual(["a", "b", "a", "b", "a"], self.taken)
        self.assertEqual("b", self.successResultOf(short))
        self.assertNoResult(long)

    def test_few_at_once(self) -> None:
        """
        Only a few pieces of work run at once; others begin after them.
        """
        names = [str(number) for number in range(AT_ONCE_MAX + 1)]
        done = [self.slices.do(self.work(name, 2)) for name in names]
        for _ in range(2 * AT_ONCE_MAX):
            self.turn()
        self.assertEqual({*names[:-1]}, {*self.taken})
        for _ in range(AT_ONCE_MAX + 3):
            self.turn()
        self.assertEqual(names, [self.successResultOf(one) for one in done])

    def test_producers_do_not_wait_for_consumers(self) -> None:
        """
        Work for producers has a queue of its own.
        """
        incoming, outgoing = (self.parts.service(line) for line in (IncomingSlices, OutgoingSlices))
        for _ in range(AT_ONCE_MAX + 3):
            outgoing.do(self.work("out", 100))
        done = incoming.do(self.work("in", 1))
        for _ in range(2):
            self.turn()
        self.assertEqual("in", self.successResultOf(done))

    def test_failure(self) -> None:
        """
        Work that fails raises its error, and other work continues.
        """

        def failing() -> Steps[None]:
            yield None
            raise ValueError("no")

        failed, other = self.slices.do(failing()), self.slices.do(self.work("b", 1))
        for _ in range(3):
            self.turn()
        self.assertEqual("no", str(self.failureResultOf(failed, ValueError).value))
        self.assertEqual("b", self.successResultOf(other))


class ThreadTests(SlicesTestCase):
    def test_threads(self) -> None:
        """
        A step may run in a thread while other work continues; the work gets its result.
        """
        done, other = self.slices.do(self.threaded("a", lambda: 7)), self.slices.do(self.work("b", 1))
        for _ in range(3):
            self.turn()
        self.assertEqual("b", self.successResultOf(other))
        self.assertNoResult(done)
        [(call, fired)] = self.calls
        fired.callback(call())
        self.assertEqual(["a", "b"], self.taken)  # it continues in its own turn
        self.turn()
        self.assertEqual(7, self.successResultOf(done))

    def test_failing_threads(self) -> None:
        """
        The error in the thread is raised in the work.
        """

        def forgiving() -> Steps[str]:
            try:
                yield lambda: None
            except OSError as error:
                return str(error)
            return "none"

        forgiven, failed = self.slices.do(forgiving()), self.slices.do(self.threaded("a", lambda: None))
        self.turn()
        self.turn()
        for _, fired in self.calls:
            fired.errback(OSError("no"))
        self.turn()
        self.turn()
        self.assertEqual("no", self.successResultOf(forgiven))
        self.failureResultOf(failed, OSError)

    def test_threads_are_few(self) -> None:
        """
        Work in a thread counts as running.
        """
        done = [self.slices.do(self.threaded("a", lambda: None)) for _ in range(AT_ONCE_MAX + 1)]
        for _ in range(AT_ONCE_MAX + 2):
            self.turn()
        self.assertEqual(AT_ONCE_MAX, len(self.calls))
        self.calls[0][1].callback(None)
        for _ in range(3):
            self.turn()
        self.assertEqual(AT_ONCE_MAX + 1, len(self.calls))
        self.successResultOf(done[0])
