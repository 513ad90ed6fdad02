"""
Starts a gateway in its own process, on a free port, and stops it.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from kgateway.config.settings import OPTIONS
from kgateway.config.sources import SettingsError, SettingValue, from_keywords, value_of

_READY = "is ready: "
_LOOPBACK = ("--listen", "tcp:0:interface=127.0.0.1")
_AT_ONCE = ("--group-initial-rebalance-delay-ms", "0")
_OWN = ("port_file", "control_socket")
_PORT, _SOCKET = "port", "control.sock"  # in the folder, in which the gateway runs
_KEYWORDS = [row for row in OPTIONS.values() if row.name not in _OWN]


class NotStarted(Exception):
    """
    The gateway ended, or was not ready in time. The message contains its log.
    """


class Kafka:
    """
    A gateway in its own process. As a context manager, it starts and stops the gateway:

        with Kafka(num_partitions=8) as kafka:
            producer = Producer({"bootstrap.servers": kafka.bootstrap})

    `options` are those of `kgateway serve`, as on its command line. `settings` are the same options as keyword
    arguments with Python values: `Kafka(num_partitions=8, auto_create_topics=False)`. Without `--listen` the gateway
    listens on a free port of the loopback interface. The first rebalance of a group does not wait for more members,
    unless `group_initial_rebalance_delay_ms` is set. The files of the gateway are in `folder`, by default a temporary
    folder that is removed when the context ends. The gateway must be ready within `patience_s` seconds.
    """

    def __init__(
        self,
        *options: str,
        folder: str | os.PathLike[str] | None = None,
        patience_s: float = 30,
        **settings: SettingValue,
    ) -> None:
        self._options = [*_AT_ONCE, *options, *_arguments(settings)]
        self._own_folder = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="kgateway-"))
        self._patience_s = patience_s
        self._lines: list[str] = []
        self._ready = Event()
        self._process: subprocess.Popen[str] | None = None
        self._reader: Thread | None = None

    def start(self) -> Self:
        """
        Start the gateway, or start it again if it was stopped or killed, and wait until clients can connect. Raises
        NotStarted if it does not become ready.
        """
        self._ready.clear()
        (self.folder / _PORT).unlink(missing_ok=True)
        self._process = subprocess.Popen(
            self._command(), cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._reader = Thread(target=self._read, args=[self._process], daemon=True)
        self._reader.start()
        self._ready.wait(self._patience_s)
        if not (self.folder / _PORT).exists():
            self.kill()
            raise NotStarted(f"the gateway did not become ready:\n{self.log}")
        return self

    def stop(self, patience_s: float = 30) -> int:
        """
        Stop the gateway, which first answers the requests that have begun. Returns its exit code.
        """
        return self._end(signal.SIGTERM, patience_s)

    def kill(self) -> int:
        """
        Kill the gateway with SIGKILL, as in a crash. Returns its exit code.
        """
        return self._end(signal.SIGKILL, 30)

    @property
    def addresses(self) -> list[str]:
        """
        HOST:PORT of each listener.
        """
        return (self.folder / _PORT).read_text().split()

    @property
    def bootstrap(self) -> str:
        """
        HOST:PORT of the first listener, for `bootstrap.servers`.
        """
        return self.addresses[0]

    @property
    def port(self) -> int:
        """
        The port of the first listener.
        """
        return int(self.bootstrap.rpartition(":")[2])

    @property
    def control_socket(self) -> str:
        """
        The path of the control socket, for `kgateway why --control-socket` and the other commands that query a running
        gateway.
        """
        return str(self.folder / _SOCKET)

    @property
    def pid(self) -> int:
        """
        The process id of the gateway.
        """
        assert self._process, "it was not started"
        return self._process.pid

    @property
    def log(self) -> str:
        """
        Everything that the gateway has logged so far.
        """
        return "".join(self._lines)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._remove_own_folder()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._remove_own_folder()

    def _remove_own_folder(self) -> None:
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _command(self) -> Sequence[str]:
        listens = any(option.partition("=")[0] == "--listen" for option in self._options)
        listen = () if listens else _LOOPBACK
        files = ("--port-file", _PORT, "--control-socket", _SOCKET)  # addresses of sockets must be short
        return [sys.executable, "-m", "kgateway", "serve", *listen, *files, *self._options]

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            self._lines.append(line)
            if _READY in line:
                self._ready.set()
        self._ready.set()  # it has ended

    def _end(self, how: signal.Signals, patience_s: float) -> int:
        process, reader = self._process, self._reader
        assert process, "it was not started"
        assert reader
        if process.poll() is None:
            process.send_signal(how)
        try:
            code = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        reader.join()
        if process.stdout:
            process.stdout.close()
        return code


def _arguments(settings: Mapping[str, SettingValue]) -> Iterator[str]:
    """
    The settings as arguments of the command. They are checked here, where a mistake has a traceback to its line.
    """
    try:
        given = from_keywords(_KEYWORDS, settings)
    except SettingsError as error:
        raise TypeError(str(error)) from None
    for name, value in given.items():
        try:
            value_of(OPTIONS[name], value)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        for text in value.texts:
            yield from (OPTIONS[name].flag, text)
