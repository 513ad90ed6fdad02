"""
The clients that can be members, and the protocols of each.

The Java client needs KAFKA_JARS and MEMBER_CLASSES, franz-go its program on the path, kafkajs a NODE_PATH with its
modules.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Kind:
    name: str
    command: tuple[str, ...]
    protocols: frozenset[str]
    static: frozenset[str]  # the protocols in which it can have an instance id

    def __str__(self) -> str:
        return self.name


_ALL = frozenset({"eager", "cooperative", "consumer"})
_CLASSIC = _ALL - {"consumer"}
_EAGER = frozenset({"eager"})


def python(name: str, protocols: frozenset[str]) -> Kind:
    return Kind(name, (sys.executable, "-m", f"tests.clients.groups.members.{name}_member"), protocols, protocols)


CONFLUENT = python("confluent", _ALL)
KAFKA_PYTHON = python("kafkapython", _CLASSIC)
AIOKAFKA = python("aiokafka", _EAGER)
# In the consumer protocol, franz-go 1.22 leaves without its instance id, which Kafka requires.
GO = Kind("go", ("franz-go-client",), _ALL, _CLASSIC)
NODE = Kind("node", ("node", str(_HERE.parent / "node" / "member.js")), _EAGER, frozenset())


def java() -> Kind:
    return Kind("java", java_command("Member"), _ALL, _ALL)


def java_command(program: str) -> tuple[str, ...]:
    """
    The command of a class that the environment has compiled.
    """
    classes = f"{os.environ['MEMBER_CLASSES']}{os.pathsep}{os.environ['KAFKA_JARS']}/*"
    options = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m")
    return ("java", *options, "-cp", classes, program)


def cast_of(protocols: Sequence[str], random: Random) -> list[Kind]:
    """
    The available clients that speak one of the protocols. librdkafka 2.16 as the leader of a cooperative group may
    repeat a topic in an assignment, of which franz-go 1.22 takes the last: so only one of the two is included.
    """
    found = [kind for kind in kinds() if kind.protocols & {*protocols}]
    if "cooperative" in protocols and {CONFLUENT, GO} <= {*found}:
        found.remove(random.choice([CONFLUENT, GO]))
    return found


def kinds() -> list[Kind]:
    found = [CONFLUENT, KAFKA_PYTHON]
    if find_spec("aiokafka"):
        found.append(AIOKAFKA)
    if "MEMBER_CLASSES" in os.environ:
        found.append(java())
    if shutil.which("franz-go-client"):
        found.append(GO)
    if "NODE_PATH" in os.environ:
        found.append(NODE)
    return found
