"""
Programs in Java beside Kafka's jars, which the environment variable KAFKA_JARS names the folder of.

`tox -e bench-kafka` has Maven fetch them once. Clients get the memory that Kafka's scripts give to its own.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_CLIENT = ("-Xmx512m", "-XX:+UseG1GC")
_PATIENCE_S = 600
_SERVER = re.compile(r"kafka_[0-9.]+-([0-9.]+)\.jar")


class NoJars(Exception):
    """
    Kafka's jars are missing; the message says how to get them.
    """


def _jars() -> Path:
    folder = os.environ.get("KAFKA_JARS", "")
    if not folder:
        raise NoJars("KAFKA_JARS names no folder with the jars of bench/kafka/pom.xml: run tox -e bench-kafka")
    return Path(folder)


def kafka_version() -> str:
    """
    The version of the server among the jars.
    """
    found = [match[1] for file in _jars().glob("*.jar") if (match := _SERVER.fullmatch(file.name))]
    if len(found) != 1:
        raise NoJars(f"{_jars()} has {len(found)} jars of Kafka's server, and should have one")
    return found[0]


def java_version() -> str:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    found: list[str] = re.findall(r'version "([^"]+)"', told)
    return found[0]


def java(program: str, *arguments: str, options: Sequence[str] = _CLIENT) -> list[str]:
    """
    The command that runs a class, or a source file.
    """
    return ["java", *options, "-cp", f"{_jars()}/*", program, *arguments]


def output(program: str, *arguments: str) -> str:
    """
    The stdout of a client, which must succeed.
    """
    command = java(program, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
