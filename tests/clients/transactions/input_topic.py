"""
The input of copiers.
"""

from random import Random

from confluent_kafka import Producer

_PATIENCE_S = 60
_KEYS = 24
_BATCH = 100


class InputTopic:
    """
    Appends numbers in committed batches; in between, batches of negative numbers are aborted.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, chance: Random) -> None:
        self.count = 0
        self._topic = topic
        self._partitions = partitions
        self._chance = chance
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "filling", "log_level": 0})
        self._producer.init_transactions(_PATIENCE_S)

    def write(self, batches: int) -> None:
        for _ in range(batches):
            if self._chance.random() < 0.2:
                self._send(b"-")
                self._producer.flush(_PATIENCE_S)
                self._producer.abort_transaction(_PATIENCE_S)
            self._send(b"")
            self._producer.commit_transaction(_PATIENCE_S)
            self.count += _BATCH

    def _send(self, sign: bytes) -> None:
        self._producer.begin_transaction()
        for number in range(self.count, self.count + _BATCH):
            key = number % _KEYS  # which is always in the same partition
            partition = key % self._partitions
            self._producer.produce(self._topic, b"%b%d" % (sign, number), b"key %d" % key, partition)
