"""
What twistd runs: a gateway, and what belongs to the process around it.

Nothing is opened and no thread begins before the service starts, for twistd forks before that. What goes wrong at the
start ends the process with a message in plain words: to the terminal where there is one, else to the parent of the
daemon, which prints it.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn, cast

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorCore
from twisted.logger import Logger, globalLogPublisher
from twisted.python.failure import Failure

from kgateway import __version__
from kgateway.broker.unusable import Unusable
from kgateway.cluster.view import Address
from kgateway.config.settings import Settings
from kgateway.config.sources import SettingsError
from kgateway.control.commands import commands
from kgateway.control.connections import Connections
from kgateway.control.server import ControlSocket, ControlSocketError
from kgateway.loggers import ProcessLog
from kgateway.observe.levels import LogLevels
from kgateway.observe.profile import Profiler
from kgateway.server.discovery import discover
from kgateway.server.gateway import Gateway, StartError
from kgateway.server.options import Options as Options
from kgateway.server.plugin_rows import plugin_rows
from kgateway.server.port_file import PortFile
from kgateway.server.process_limits import allow_many_files, keep_freed_memory, seldom_look_for_cycles
from kgateway.server.registry import PluginError

_FORESEEN = (SettingsError, PluginError, ControlSocketError, StartError, Unusable)


def makeService(options: Options) -> Service:
    """
    The service that `twistd kgateway` runs.
    """
    from twisted.internet import reactor

    # Timers must not follow the wall clock: a step of it would end every session. No timer has been made yet.
    reactor.seconds = time.monotonic  # type: ignore[method-assign]
    # `twistd` says so, and `twist` knows no other way.
    in_terminal = bool(options.parent and options.parent.get("nodaemon", True))
    return GatewayService(options.settings, cast(IReactorCore, reactor), in_terminal)


class GatewayService(Service):
    """
    A gateway in a process of its own.
    """

    _log = Logger()

    def __init__(self, settings: Settings, reactor: Any, in_terminal: bool) -> None:
        self._settings = settings
        self._reactor = reactor
        self._in_terminal = in_terminal
        self._levels = LogLevels(globalLogPublisher, settings.log_level)
        self._gateway: Gateway | None = None
        self._control: ControlSocket | None = None
        self._port_file: PortFile | None = None

    def privilegedStartService(self) -> None:
        """
        Import the handlers while it has all its rights: with fewer, not every installed module can be read.
        """
        super().privilegedStartService()
        with suppress(Exception):  # which is told when the gateway starts
            discover(self._settings.handlers)

    def startService(self) -> None:
        super().startService()
        self._reactor.callWhenRunning(self._levels.start)  # under `twist` there are no logs before
        failures: list[Failure] = []
        at_once = True

        def failed(failure: Failure) -> None:
            if at_once:
                failures.append(failure)
            elif self.running:  # else it was told to stop meanwhile
                self._give_up(failure)

        Deferred.fromCoroutine(self._start()).addErrback(failed)
        at_once = False
        if failures:  # twistd still listens
            self._refuse(failures[0])

    def stopService(self) -> Deferred[None]:
        super().stopService()
        self._hear_no_more()
        return Deferred.fromCoroutine(self._stop())

    async def _start(self) -> None:
        allow_many_files()
        keep_freed_memory()
        gateway = self._gateway = Gateway(self._settings, self._reactor)
        gateway.parts.service(ProcessLog).levels = self._levels
        bound = await gateway.start()
        self._port_file = self._prepare_port_file(bound)
        self._control = await self._open_control(gateway)
        seldom_look_for_cycles()
        self._reactor.callWhenRunning(self._say_ready, gateway, bound)  # from then on it can be told to stop, too

    def _prepare_port_file(self, bound: list[Address]) -> PortFile | None:
        path = self._settings.port_file
        try:
            return PortFile(path, bound) if path else None
        except OSError as error:
            raise StartError(f"--port-file {path} cannot be written: {error.strerror}") from None

    async def _open_control(self, gateway: Gateway) -> ControlSocket:
        """
        Last, for it leaves a file behind where the start fails after it.
        """
        rows, profiler = plugin_rows(gateway.registry), Profiler(self._reactor)
        connections = Connections(gateway.connections, self._reactor)
        answers = commands(gateway.reasons, rows, self._levels, profiler, connections)
        control = ControlSocket(self._settings.control_socket, answers, self._reactor)
        await control.open()
        return control

    def _say_ready(self, gateway: Gateway, bound: list[Address]) -> None:
        if self._port_file:
            self._port_file.publish()
        names = [listener.name for listener in self._settings.listen]
        where = ", ".join(f"{name} on {address}" for name, address in zip(names, bound, strict=True))
        ready = f"kgateway {__version__} is ready: {where}; {gateway.broker.description}"
        if self._in_terminal and sys.__stdout__:  # twistd has made a log of sys.stdout
            print(ready, file=sys.__stdout__, flush=True)
        else:
            self._log.info("{ready}", ready=ready)

    async def _stop(self) -> None:
        try:
            if self._control:
                await self._control.close()
            if self._gateway:
                await self._gateway.stop()
            if self._port_file:
                self._port_file.remove()
        finally:
            self._levels.stop()

    def _hear_no_more(self) -> None:
        """
        To be told again to stop changes nothing; Twisted would take it for an error.
        """
        for number, name in ((signal.SIGINT, "sigInt"), (signal.SIGTERM, "sigTerm")):
            if signal.getsignal(number) == getattr(self._reactor, name, None):
                signal.signal(number, lambda *_: self._log.info("The gateway is about to stop; only a kill is faster."))

    def _refuse(self, failure: Failure) -> NoReturn:
        """
        End the process before it has really begun.
        """
        error = failure.value
        if not isinstance(error, _FORESEEN):
            failure.raiseException()
        if self._in_terminal:
            self._complain(error)
            raise SystemExit(1)
        # A hundred bytes of it reach the terminal, behind the name of its class: that had better be short.
        raise RuntimeError(str(error)) from None

    def _give_up(self, failure: Failure) -> None:
        """
        End the process that began to start and could not.
        """
        self._log.critical("kgateway cannot start: {error}", error=failure.value)
        if self._in_terminal:
            self._complain(failure.value)
        self._reactor.addSystemEventTrigger("after", "shutdown", os._exit, 1)
        self._reactor.stop()

    def _complain(self, error: BaseException | None) -> None:
        if sys.__stderr__:  # twistd has made a log of sys.stderr
            print(f"kgateway cannot start: {error}", file=sys.__stderr__, flush=True)
