"""
A Java program that is killed and restarted, as is its gateway.
"""

import os
import subprocess
from pathlib import Path
from random import Random

from kgateway.testing.kafka import Kafka

_OPTIONS = ("-XX:TieredStopAtLevel=1", "-Xmx400m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


class Application:
    """
    A sequence of processes, each with the state that the last one has left.
    """

    def __init__(self, jars: str, folder: Path, program: str, *arguments: str) -> None:
        self._command = ["java", *_OPTIONS, "-cp", f"{os.environ[jars]}/*", program, *arguments]
        self._log = folder / "application.log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def output(self) -> str:
        return self._log.read_text(errors="replace")[-4_000:]


def kill_some(chance: Random, kafka: Kafka, application: Application) -> str:
    """
    Kill and restart one of the applications, or the gateway followed by one of them; returns what was killed.
    """
    turn = chance.random()
    if turn < 0.6:
        kafka.kill()
        kafka.start()
    if turn > 0.4:
        application.kill()
        application.start()
    return "gateway" if turn <= 0.4 else "application" if turn >= 0.6 else "both"
