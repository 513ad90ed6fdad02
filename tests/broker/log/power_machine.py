"""
A machine with a lossy disk, and one process on it after the other: what threads and clock do, the schedule says.

Work that is handed to a thread waits until its turn comes. While it is done, at each operation on the disk the reactor
may do something, and while the reactor is at the disk, a thread may. That the work is done is told later still. It is
all one real thread: what interrupts is done before what it interrupts goes on.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from tests.broker.behaviour import START_MS
from tests.broker.log.lossy_disk import LossyDisk

T = TypeVar("T")

_DEEP = 2  # what interrupts may be interrupted, and no more


class Job:
    """
    Work for a thread, and who waits for it.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done: Deferred[Any] = Deferred()
        self.owner = getattr(getattr(call, "func", call), "__self__", None)  # of a method
        self._call = call
        self._result: Any = None

    def work(self) -> None:
        """
        Do it. The end of the machine goes through.
        """
        try:
            self._result = self._call()
        except Exception:
            self._result = Failure()

    def tell(self) -> None:
        """
        Let the reactor hear of it.
        """
        self.done.callback(self._result)


class RestlessClock(Clock):
    """
    A clock that may go on while it is looked at.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance

    def seconds(self) -> float:
        if self._chance.random() < 0.1:
            self.rightNow += 0.015
        return super().seconds()


class Machine:
    """
    The machine, the process that runs, and what waits in it.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.disk = LossyDisk(chance)
        self.disk.meanwhile = self._meanwhile
        self.clock = RestlessClock(chance)
        self._boot = 1
        self._knows_boot = chance.random() < 0.9
        self.waiting: list[Job] = []  # for a thread
        self.worked: list[Job] = []  # and not told of
        self.turns: list[
            tuple[Iterator[Deferred[object] | None], Deferred[object]]
        ] = []  # what the reactor does piece by piece
        self.interrupt: Callable[[], None] = lambda: None  # what the reactor does while a thread works
        self._at_once = chance.random() < 0.1  # whether threads do what they are given before anything else happens
        self._busy = chance.choice((0.0, 0.1, 0.3))  # how often something happens meanwhile
        self._began = 0.0
        self._working: list[Job] = []
        self._depth = 0
        self._reactor_is_busy = False

    def boot_id(self) -> str | None:
        """
        Since when the machine is on; not every system knows.
        """
        return str(self._boot) if self._knows_boot else None

    def now_ms(self) -> int:
        """
        The wall clock, which goes on when the machine is off.
        """
        return START_MS + int((self._began + self.clock.seconds()) * 1000)

    def in_thread(self, call: Callable[[], T]) -> Deferred[T]:
        """
        Have this done by a thread.
        """
        job = Job(call)
        if self._at_once:
            job.work()
            job.tell()
        else:
            self.waiting.append(job)
        return job.done

    def in_turns(self, steps: Iterator[Deferred[object] | None]) -> Deferred[object]:
        """
        Have this done by the reactor, piece by piece.
        """
        done: Deferred[object] = Deferred()
        self.turns.append((steps, done))
        return done

    @property
    def is_idle(self) -> bool:
        """
        Whether all waits for the clock.
        """
        return not (self.waiting or self.worked or self.turns)

    def reactor(self, call: Callable[[], T]) -> T:
        """
        Do this in the reactor's thread.
        """
        before, self._reactor_is_busy = self._reactor_is_busy, True
        try:
            return call()
        finally:
            self._reactor_is_busy = before

    def work(self) -> None:
        """
        Let a thread do one thing that waits, whichever. Two methods of one object may wait for each other, and what is
        interrupted cannot: of these, the second one waits.
        """
        busy = [job.owner for job in self._working if job.owner is not None]
        able = [job for job in self.waiting if job.owner not in busy]
        if able:
            job = self.chance.choice(able)
            self.waiting.remove(job)
            self._working.append(job)
            try:
                job.work()
            finally:
                self._working.pop()
            self.worked.append(job)

    def tell(self) -> None:
        """
        Let the reactor hear of the first thing that was done.
        """
        if self.worked:
            self.reactor(self.worked.pop(0).tell)

    def turn(self) -> None:
        """
        Let the reactor do a piece of something.
        """
        if self.turns:
            turn = self.turns.pop(self.chance.randrange(len(self.turns)))
            self.reactor(lambda: self._turn(*turn))

    def advance(self, seconds: float) -> None:
        """
        Let time go by.
        """
        self.reactor(lambda: self.clock.advance(seconds))

    def end(self, *, power: bool) -> None:
        """
        The process ends, or all of the machine.
        """
        self.waiting, self.worked, self.turns = [], [], []
        self.interrupt = lambda: None
        self._began += self.clock.seconds() + 1
        self.clock = RestlessClock(self.chance)
        self._boot += power
        self.disk = self.disk.crash() if power else self.disk.kill()
        self.disk.meanwhile = self._meanwhile

    def _turn(self, steps: Iterator[Deferred[object] | None], done: Deferred[object]) -> None:
        try:
            waits = next(steps)
        except StopIteration:
            done.callback(None)
        except Exception:
            done.errback(Failure())
        else:
            (waits or succeed(None)).addCallbacks(lambda _: self.turns.append((steps, done)), done.errback)

    def _meanwhile(self) -> None:
        if self._depth == _DEEP or self.chance.random() >= self._busy:
            return
        self._depth += 1
        try:
            if self._reactor_is_busy or self.chance.random() < 0.3:
                self.work()
            else:
                self.reactor(self.interrupt)
        finally:
            self._depth -= 1
