"""
A machine with a lossy disk, and successive processes on it, whose threads and clock the schedule controls.

A thread's job waits for its turn. While it runs, at each operation on the disk the reactor may do something, and
while the reactor uses the disk, a thread may. The job's end is reported later still. All of it is one real thread: an
interrupting piece of work ends before the interrupted one continues.
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

_DEEP = 2  # interrupting work may be interrupted once


class Job:
    """
    A job of a thread, and its waiter.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done: Deferred[Any] = Deferred()
        self.owner = getattr(getattr(call, "func", call), "__self__", None)  # the object of a method
        self._call = call
        self._result: Any = None

    def work(self) -> None:
        """
        Run the job. The end of the machine passes through.
        """
        try:
            self._result = self._call()
        except Exception:
            self._result = Failure()

    def tell(self) -> None:
        """
        Report the result to the reactor.
        """
        self.done.callback(self._result)


class RestlessClock(Clock):
    """
    A clock that may advance while it is read.
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
    The machine, its running process, and waiting work.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.disk = LossyDisk(chance)
        self.disk.meanwhile = self._meanwhile
        self.clock = RestlessClock(chance)
        self._boot = 1
        self._knows_boot = chance.random() < 0.9
        self.waiting: list[Job] = []  # jobs of threads
        self.worked: list[Job] = []  # finished and not yet reported
        self.turns: list[
            tuple[Iterator[Deferred[object] | None], Deferred[object]]
        ] = []  # work of the reactor in pieces
        self.interrupt: Callable[[], None] = lambda: None  # work of the reactor while a thread is busy
        self._at_once = chance.random() < 0.1  # whether threads run their jobs before anything else happens
        self._busy = chance.choice((0.0, 0.1, 0.3))  # how often something happens meanwhile
        self._began = 0.0
        self._working: list[Job] = []
        self._depth = 0
        self._reactor_is_busy = False

    def boot_id(self) -> str | None:
        """
        The id of the machine's boot; not every system knows it.
        """
        return str(self._boot) if self._knows_boot else None

    def now_ms(self) -> int:
        """
        The wall clock, which advances while the machine is off.
        """
        return START_MS + int((self._began + self.clock.seconds()) * 1000)

    def in_thread(self, call: Callable[[], T]) -> Deferred[T]:
        job = Job(call)
        if self._at_once:
            job.work()
            job.tell()
        else:
            self.waiting.append(job)
        return job.done

    def in_turns(self, steps: Iterator[Deferred[object] | None]) -> Deferred[object]:
        """
        Have the reactor do this in pieces.
        """
        done: Deferred[object] = Deferred()
        self.turns.append((steps, done))
        return done

    @property
    def is_idle(self) -> bool:
        """
        Whether everything waits for the clock.
        """
        return not (self.waiting or self.worked or self.turns)

    def reactor(self, call: Callable[[], T]) -> T:
        before, self._reactor_is_busy = self._reactor_is_busy, True
        try:
            return call()
        finally:
            self._reactor_is_busy = before

    def work(self) -> None:
        """
        Have a thread run any waiting job. Two methods of one object may wait for each other, which interrupted work
        cannot: of these, the second one waits.
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
        Report the first finished job to the reactor.
        """
        if self.worked:
            self.reactor(self.worked.pop(0).tell)

    def turn(self) -> None:
        """
        Let the reactor run a piece of work.
        """
        if self.turns:
            turn = self.turns.pop(self.chance.randrange(len(self.turns)))
            self.reactor(lambda: self._turn(*turn))

    def advance(self, seconds: float) -> None:
        self.reactor(lambda: self.clock.advance(seconds))

    def end(self, *, power: bool) -> None:
        """
        End the process, or all of the machine.
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
