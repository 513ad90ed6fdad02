"""
A schedule of what clients, threads, clock, operator and power do to a broker, drawn from a seed.

It consists of lives: a broker is started, compared with what it must have, used for a while, and ended: by a clean
stop, or with its process or its machine, even during the start. `trace` has the events.
"""

from collections.abc import Callable
from errno import EIO, ENOSPC
from random import Random

from twisted.python.failure import Failure

from kgateway.interfaces import IBroker, IPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.log.lossy_disk import PowerLoss
from tests.broker.log.power_clients import Batches, Clients
from tests.broker.log.power_deletions import Deletions
from tests.broker.log.power_log import Outlasts
from tests.broker.log.power_machine import Machine
from tests.broker.log.power_operator import Configure, Operator
from tests.broker.log.power_readers import RECOVERS, Readers
from tests.broker.log.power_topics import ExpectedCluster, ExpectedTopic

Make = Callable[[Machine], IBroker]

_SECONDS = (0.01, 0.2, 1, 5, 10, 60)
_OFTEN = ("append", "append", "sync", "sync")
_FAILING = (*_OFTEN, "open", "open_folder", "sync_folder", "rename", "truncate", "remove", "make_folder")
_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Schedule:
    def __init__(self, seed: int, make: Make, configure: Configure) -> None:
        self.trace: list[str] = []
        self.chance = Random(seed)
        self.machine = Machine(self.chance)
        self.cluster = ExpectedCluster()
        self._make = make
        self._operator = Operator(self.chance, self.cluster, self, configure, Batches(self.chance, self.machine.now_ms))
        self._deletions = Deletions(self.chance, self)
        self._broken: list[BaseException | None] = []
        self._ended = Outlasts.NOTHING  # what batches have had to survive since the last comparison
        self._fails = self.chance.random() < 0.3  # whether disk operations fail
        self._has_failed = False
        self._pace = 0  # how soon threads begin their jobs
        self._broker: IBroker
        self._readers: Readers

    def run(self) -> None:
        """
        Run the schedule, and raise the first fault.
        """
        for _ in range(self.chance.randint(2, 5)):
            if self._unless_off(self._start):
                self._unless_off(self._live)
            self._end()
        while not self._unless_off(self._start):
            self._end()

    def tell(self, what: str) -> None:
        self.trace.append(what)

    def hears(self) -> bool:
        return not self.machine.disk.off

    def excuse(self, failure: BaseException | None) -> None:
        known = isinstance(failure, KafkaError) and (
            failure.code in (*RECOVERS, *_GONE) or (failure.code is ErrorCode.KAFKA_STORAGE_ERROR and self._has_failed)
        )
        if failure and not known and self.hears():
            raise failure

    def note(self, failure: Failure) -> None:
        if self.hears():
            self._broken.append(failure.value)

    def _unless_off(self, act: Callable[[], object]) -> bool:
        """
        Run this, and return whether the machine is still on. Failures while it is off are no faults.
        """
        try:
            act()
        except PowerLoss:
            pass
        except Exception:
            if self.hears():
                raise
        self._check()
        return self.hears()

    def _check(self) -> None:
        if self._broken and self._broken[0]:
            raise self._broken[0]

    def _start(self) -> None:
        machine = self.machine
        if self.chance.random() < 0.25:
            machine.disk.stop_after(self.chance.choice((3, 10, 30, 100)) + self.chance.randrange(10))
        self._broker = self._make(machine)
        self._readers = Readers(machine, self._broker)
        self._readers.wait(self._broker.start)
        self.trace.append(f"started, boot {self.machine.boot_id()}")
        self.cluster.check(self._broker.view())
        for topic in self.cluster.topics.values():
            for index, clients in enumerate(topic.clients):
                assert topic.id
                partition = self._readers.partition(topic.id, index)
                self._readers.compare(partition, clients, self._ended)
        self._check()
        self._ended = Outlasts.NOTHING
        self.trace.append(
            ", ".join(f"{c.log.name} {c.log.tip.end}" for t in self.cluster.topics.values() for c in t.clients)
        )

    def _live(self) -> None:
        self.machine.interrupt = self._interrupt
        self._pace = self.chance.choice((5, 30, 60))
        if self.chance.random() < 0.3:
            self.machine.disk.stop_after(self.chance.randrange(150))
        for _ in range(self.chance.choice((5, 20, 60))):
            self._step()
            self._observe()
            self._check()

    def _end(self) -> None:
        how = "kill" if self.chance.random() < 0.5 else "crash"
        if self.hears() and self.chance.random() < 0.3 and self._unless_off(self._stop):
            how = f"stop, {how}"
        self.trace.append(how)
        power = how.endswith("crash")
        self._ended = max(self._ended, Outlasts.MACHINE if power else Outlasts.PROCESS)
        self.machine.end(power=power)
        self._has_failed = False
        for topic in self.cluster.topics.values():
            topic.is_changing = topic.is_configured = False

    def _stop(self) -> None:
        self.machine.interrupt = lambda: None  # the listeners are closed by now
        try:
            self._readers.wait(self._broker.stop)
        except Exception:
            if not self._has_failed:
                raise
            return
        if not self._has_failed:
            for topic in self.cluster.topics.values():
                for clients in topic.clients:
                    clients.log.stopped()

    def _interrupt(self) -> None:
        """
        Let the reactor do something while a thread is busy.
        """
        try:
            self.trace.append("meanwhile")
            self.chance.choice((self._send, self._send, self.machine.tell, self._tick, self._change, self._let_go))()
        except Exception as error:
            self._broken.append(error)

    def _step(self) -> None:
        machine = self.machine
        steps = {
            self._send: 30,
            machine.work: self._pace if machine.waiting else 0,
            machine.tell: 30 if machine.worked else 0,
            machine.turn: 30 if machine.turns else 0,
            self._tick: 6,
            self._change: 5,
            self._look: 3,
            self._let_go: 3,
            self._break: 2 if self._fails else 0,
        }
        [step] = self.chance.choices([*steps], [*steps.values()])
        if step in (machine.work, machine.tell, machine.turn):
            self.trace.append(f"{step.__name__} {len(machine.waiting)} {len(machine.worked)} {len(machine.turns)}")
            step()
        elif step == self._look:
            step()
        else:
            machine.reactor(step)

    def _observe(self) -> None:
        for topic in [*self.cluster.topics.values()]:
            for index, clients in enumerate(topic.clients if topic.is_usable else ()):
                partition = self._partition(topic, index)
                if partition and not partition.lost:
                    clients.log.begins(partition.log_start)
                    clients.log.readable(partition.high_watermark)
                    clients.log.epoch_is(partition.leader_epoch)

    def _partition(self, topic: ExpectedTopic, index: int) -> IPartition | None:
        topic_id = topic.id
        assert topic_id
        try:
            return self.machine.reactor(lambda: self._broker.partition(topic_id, index))
        except KafkaError as error:
            self.excuse(error)
            return None

    def _any(self) -> tuple[IPartition, Clients] | None:
        usable = [topic for topic in self.cluster.topics.values() if topic.is_usable]
        if not usable:
            return None
        topic = self.chance.choice(usable)
        index = self.chance.randrange(len(topic.clients))
        partition = self._partition(topic, index)
        return (partition, topic.clients[index]) if partition else None

    def _send(self) -> None:
        chosen = self._any()
        if chosen is None:
            return
        partition, clients = chosen
        if not clients.producers or self.chance.random() < 0.4:
            told = clients.send(partition)
        else:
            producer = self.chance.choice(clients.producers)
            if self.chance.random() < 0.05:
                producer.repeat()
            told = clients.send_next(partition, producer)
        self.trace.append(f"send to {clients.log.name}: {told}")

    def _change(self) -> None:
        self._operator.change(self._broker)

    def _tick(self) -> None:
        seconds = self.chance.choice(_SECONDS)
        self.trace.append(f"tick {seconds}")
        self.machine.advance(seconds)

    def _look(self) -> None:
        chosen = self._any()
        if chosen:
            self.trace.append(f"look at {chosen[1].log.name}")
            try:
                self._readers.look(*chosen)
            except KafkaError as error:
                self.excuse(error)

    def _let_go(self) -> None:
        chosen = self._any()
        if chosen:
            self.trace.append(self._deletions.make(*chosen))

    def _break(self) -> None:
        name, number = self.chance.choice(_FAILING), self.chance.randint(1, 6)
        times = self.chance.choice((1, 1, 3, 1000))
        self.trace.append(f"{name} {number} fails, {times} times")
        self._has_failed = True
        self.machine.disk.fail(name, number, self.chance.choice((EIO, ENOSPC)), times)
