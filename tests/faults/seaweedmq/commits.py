"""
A member of a group checks, while processes are killed, that committed offsets do not go back.
"""

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.faults.background import Background
from tests.faults.ledger import PartitionName
from tests.faults.producers import QUICK_TO_RETURN

_PAUSE_S = 0.05
_ANSWER_S = 20


class Commits(Background):
    """
    Commits 1, 2, 3, ... in each partition, and reads the committed offset after each.
    """

    def __init__(self, bootstrap: str, group: str, places: list[PartitionName]) -> None:
        self.faults: list[str] = []
        self.answered = 0
        self._bootstrap = bootstrap
        self._group = group
        self._places = places
        self._sent = self._sure = 0
        super().__init__()

    def _run(self) -> None:
        config = {"bootstrap.servers": self._bootstrap, "group.id": self._group, "enable.auto.commit": False}
        member = Consumer({**config, **QUICK_TO_RETURN})
        try:
            while not self._stopping.wait(_PAUSE_S):
                self._commit(member)
        except BaseException as failure:
            self.faults.append(f"the member that commits failed: {failure!r}")
        finally:
            member.close()

    def _commit(self, member: Consumer) -> None:
        self._sent += 1
        try:
            told = member.commit(offsets=self._at(self._sent), asynchronous=False)
            if all(each.error is None for each in told or []):
                self._sure = self._sent
                self.answered += 1
            found = member.committed(self._at(-1001), timeout=_ANSWER_S)
        except KafkaException:  # who answers was killed
            return
        for each in found:
            if each.error is None and not self._sure <= each.offset <= self._sent:
                place = each.topic, each.partition
                self.faults.append(f"{place}: {self._sure} was committed, and {each.offset} is remembered")

    def _at(self, offset: int) -> list[TopicPartition]:
        return [TopicPartition(topic, partition, offset) for topic, partition in self._places]
