"""
A producer that writes large batches as fast as it can until it is ended: `python -m bench.kafka.flood BOOTSTRAP TOPIC`.

It says with an empty line that it has begun.
"""

import sys
from itertools import count

from bench.kafka.clients import random_values
from bench.produce import LARGE, PARTITIONS, RECORD_BYTES, producer

_QUEUED_KIB = 64 << 10


def main(bootstrap: str, topic: str) -> None:
    values = random_values(RECORD_BYTES)
    client = producer(bootstrap, topic, **LARGE, **{"queue.buffering.max.kbytes": _QUEUED_KIB})
    print(flush=True)
    for number in count():
        while True:
            try:
                client.produce(topic, values[number % len(values)], partition=number % PARTITIONS)
                break
            except BufferError:
                client.poll(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
