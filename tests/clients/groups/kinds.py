"""
Which clients there are to be members, and which protocols each of them speaks.

The Java client is there with KAFKA_JARS and MEMBER_CLASSES, franz-go with its program on the path, kafkajs with
NODE_PATH, where its modules are.
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
    """
    A client library.
    """

    name: str
    command: tuple[str, ...]
    protocols: frozenset[str]
    static: frozenset[str]  # those by which it can have an instance id

    def __str__(self) -> str:
        return self.name


_ALL = frozenset({"eager", "cooperative", "consumer"})
_CLASSIC = _ALL - {"consumer"}
_EAGER = frozenset({"eager"})


def python(name: str, protocols: frozenset[str]) -> Kind:
    """
    A program of `members/`.
    """
    return Kind(name, (sys.executable, "-m", f"tests.clients.groups.members.{name}_member"), protocols, protocols)


CONFLUENT = python("confluent", _ALL)
KAFKA_PYTHON = python("kafkapython", _CLASSIC)
AIOKAFKA = python("aiokafka", _EAGER)
# Leaving by the consumer protocol, franz-go 1.22 does not say which instance it is, as Kafka demands.
GO = Kind("go", ("franz-go-client",), _ALL, _CLASSIC)
NODE = Kind("node", ("node", str(_HERE.parent / "node" / "member.js")), _EAGER, frozenset())


def java() -> Kind:
    """
    Kafka's own.
    """
    return Kind("java", java_command("Member"), _ALL, _ALL)


def java_command(program: str) -> tuple[str, ...]:
    """
    One that the environment has compiled.
    """
    classes = f"{os.environ['MEMBER_CLASSES']}{os.pathsep}{os.environ['KAFKA_JARS']}/*"
    options = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m")
    return ("java", *options, "-cp", classes, program)


def cast_of(protocols: Sequence[str], random: Random) -> list[Kind]:
    """
    Those that are here and speak one of the protocols. librdkafka 2.16 as the leader of a cooperative group may name a
    topic of an assignment more than once, of which franz-go 1.22 takes the last: so only one of them is in it.
    """
    found = [kind for kind in kinds() if kind.protocols & {*protocols}]
    if "cooperative" in protocols and {CONFLUENT, GO} <= {*found}:
        found.remove(random.choice([CONFLUENT, GO]))
    return found


def kinds() -> list[Kind]:
    """
    Those that are here.
    """
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
