"""
Writes tests/wire/golden.txt: `python -m tests.kafka.golden`, with the jars of tests/kafka/pom.xml.

Kafka's classes read the seeds of every message and version that no other codec knows, and write them again. Each line
has message, version, Kafka's bytes, and the fields as Kafka shows them. So the default suite can check these without
Java.
"""

import json
from pathlib import Path

from tests.fuzz.seeds import seeds
from tests.kafka.oracle import Oracle
from tests.wire.judges import UNJUDGED

GOLDEN = Path(__file__).parents[1] / "wire" / "golden.txt"


def main() -> None:
    """
    Ask today's Kafka first, then the one with the oldest versions.
    """
    oracles = [Oracle("new"), Oracle("old")]
    lines = []
    for message, version in UNJUDGED:
        for seed in seeds(message):
            if seed.version == version:
                answers = (oracle.ask(message.__name__, version, seed.data) for oracle in oracles)
                data, shown = next(answer for answer in answers if answer)
                lines.append(f"{message.__name__} {version} {data.hex()} {json.dumps(shown, ensure_ascii=True)}")
    for oracle in oracles:
        oracle.close()
    GOLDEN.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
