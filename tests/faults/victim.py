"""
A server that is killed at chosen moments and restarted.

The moments follow from a seed, as far as the system lets them. Some are arbitrary; others are those at which a server
has most to lose: while it writes a checkpoint, rolls a segment, recovers from a crash, starts or stops.
"""

import os
import socket
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from random import Random, SystemRandom
from signal import SIGKILL, SIGTERM
from threading import Thread
from time import monotonic, sleep

from kgateway.testing.kafka import Kafka, NotStarted

_PORTS = range(20_000, 32_000)  # below the ephemeral ports, from which a client could connect to itself
_POLL_S = 0.0005
_PATIENCE_S = 30
_LINES_SHOWN = 30


def free_port() -> int:
    """
    A port without a listener.
    """
    while True:
        port = SystemRandom().choice(_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Victim:
    """
    The server, which keeps its port and its folder.
    """

    def __init__(self, folder: Path, random: Random) -> None:
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.data = folder / "kgateway-data"
        self.kills = 0
        self.start_times_s: list[float] = []
        self._kafka = Kafka("--listen", f"tcp:{self.port}:interface=127.0.0.1", folder=folder)
        self._random = random
        self._ways = cycle(
            [
                self._amid_load,
                self._after_a_checkpoint,
                self._at_the_start,
                self._at_a_roll,
                self._when_ready,
                self._amid_load,
                self._at_the_stop,
                self._at_a_roll,
                self._at_a_checkpoint,
            ]
        )

    @property
    def log(self) -> str:
        """
        The log of all its lives.
        """
        return self._kafka.log

    def tracebacks(self) -> list[str]:
        """
        The tracebacks in its log, each with the lines around it.
        """
        lines = self.log.splitlines()
        places = [number for number, line in enumerate(lines) if "Traceback" in line]
        return ["\n".join(lines[max(number - 2, 0) : number + _LINES_SHOWN]) for number in places]

    def files(self, pattern: str) -> list[Path]:
        """
        The current files in its data folder; topics may be deleted meanwhile.
        """
        found = [Path(folder, name) for folder, _, names in os.walk(self.data) for name in names]
        return [path for path in found if path.match(pattern)]

    def start(self) -> None:
        """
        Start, and wait until clients can connect.
        """
        began = monotonic()
        self._kafka.start()
        self.start_times_s.append(monotonic() - began)

    def stop(self) -> None:
        self._kafka.stop()

    def kill(self) -> None:
        self._kafka.kill()
        self.kills += 1

    def crash(self) -> None:
        """
        Kill it soon, without a restart.
        """
        next(self._ways)()

    def _amid_load(self) -> None:
        sleep(self._random.uniform(0.1, 1.2))
        self.kill()

    def _when_ready(self) -> None:
        """
        Kill while partitions are recovered.
        """
        sleep(self._random.uniform(0, 0.1))
        self.kill()

    def _at_a_checkpoint(self) -> None:
        self._when_new(self.data / "plain-0", ".snapshot")
        sleep(self._random.uniform(0, 0.03))
        self.kill()

    def _after_a_checkpoint(self) -> None:
        self._when_new(self.data / "plain-0", ".snapshot")
        sleep(self._random.uniform(0.05, 0.5))
        self.kill()

    def _at_a_roll(self) -> None:
        self._when_new(self.data / "small-0", ".log")
        sleep(self._random.uniform(0, self._random.choice([0.0005, 0.005])))
        self.kill()

    def _at_the_stop(self) -> None:
        sleep(self._random.uniform(0.1, 1))
        os.kill(self._kafka.pid, SIGTERM)
        sleep(self._random.uniform(0, 0.2))
        self.kill()

    def _at_the_start(self) -> None:
        """
        Kill under load, and once more before it is back.
        """
        self._amid_load()
        dead = self._kafka.pid
        starting = Thread(target=self._try_to_start)
        starting.start()
        while self._kafka.pid == dead:
            sleep(_POLL_S)
        sleep(self._random.uniform(0.3, 1.2) * self.start_times_s[-1])
        os.kill(self._kafka.pid, SIGKILL)
        starting.join()
        self.kill()  # the process is dead already

    def _try_to_start(self) -> None:
        with suppress(NotStarted):
            self._kafka.start()

    def _when_new(self, folder: Path, suffix: str) -> None:
        """
        Wait until the server has created such a file.
        """
        known, deadline = _names(folder, suffix), monotonic() + _PATIENCE_S
        while _names(folder, suffix) <= known and monotonic() < deadline:
            sleep(_POLL_S)


def _names(folder: Path, suffix: str) -> set[str]:
    return {name for name in os.listdir(folder) if name.endswith(suffix)} if folder.exists() else set()
