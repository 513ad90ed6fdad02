"""
What twistd runs: a gateway, and the process around it.

Nothing is opened and no thread begins before the service starts, because twistd forks before that. A start ends with
a line on the terminal: that the gateway is ready, or why it is not, and then the process ends.
"""

import ctypes
import gc
import os
import resource
import signal
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorCore
from twisted.logger import Logger, formatTime, globalLogPublisher
from twisted.python.failure import Failure

from kgateway import __version__
from kgateway.admin.log_levels import ProcessLog
from kgateway.broker.base import BrokerMisplaced, BrokerUnusable
from kgateway.cluster.view import Address
from kgateway.config.listeners import Listener
from kgateway.config.settings import Settings
from kgateway.config.sources import SettingsError
from kgateway.control.commands import commands
from kgateway.control.connections import Connections
from kgateway.control.server import ControlSocket, ControlSocketError, ControlSocketMisplaced
from kgateway.log_messages import CANNOT_START
from kgateway.observe.levels import LogLevels
from kgateway.observe.profile import Profiler
from kgateway.server.addresses import NOWHERE, PortFile
from kgateway.server.budget import YOUNG
from kgateway.server.discovery import discover, plugin_rows
from kgateway.server.gateway import Gateway, StartError, StartMistake
from kgateway.server.process.log_files import log_files, reopen_on_hangup
from kgateway.server.process.options import MISTAKE
from kgateway.server.process.options import Options as Options
from kgateway.server.process.start_report import StartReport
from kgateway.server.registry import NoSuchPackage, Plugin, PluginError

_FORESEEN = (SettingsError, PluginError, ControlSocketError, StartError, BrokerUnusable)
# An option names what cannot be used, today or tomorrow; other failures may pass.
_MISTAKES = (SettingsError, NoSuchPackage, ControlSocketMisplaced, StartMistake, BrokerMisplaced)
_FAILED = 1  # the exit code
# Usually imported on first use.
_LATE_MODULES = ("kgateway.broker.log.broker", "kgateway.records.compressors", "re2")
_ANOTHER_USER = ("uid", "gid", "chroot")  # options of twistd
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
_KEPT_BYTES = 16 << 20
_MAPPED_BYTES = 32 << 20  # the most that malloc allows
# Thresholds of the garbage collector: new objects before it scans them, a few milliseconds' work, and such collections
# before it scans older objects too. A long poll is up to forty objects, and a thousand of them wait side by side.
_NEW_OBJECTS, _COLLECTIONS = 50_000, 20


def allow_many_files() -> None:
    """
    Use as many descriptors as the system permits: each client takes one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_freed_memory() -> None:
    """
    Let malloc keep freed memory, within bounds. Otherwise a megabyte for each batch would be mapped and unmapped page
    by page, which costs more than copying the batch.
    """
    with suppress(AttributeError, OSError):  # malloc is not glibc's
        set_option = ctypes.CDLL(None).mallopt
        set_option(_MMAP_THRESHOLD, _MAPPED_BYTES)
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)


def return_freed_memory() -> None:
    """
    Return what the start has freed to the system. It would be kept, and mostly stay unused.
    """
    with suppress(AttributeError, OSError):  # malloc is not glibc's
        ctypes.CDLL(None).malloc_trim(0)


def collect_cycles_seldom() -> None:
    """
    Exclude the objects of the start from garbage collection and collect the others seldom: a thousand clients that wait
    are many objects and no cycle. Scanning them took a fifth of a rebalance, and a tenth of long polls. Large
    frames in cycles are collected by their bytes (budget.py). What the start itself leaves is collected young: a full
    collection would find next to nothing, and delay the first clients.
    """
    gc.collect(YOUNG)
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _COLLECTIONS, _COLLECTIONS)


def makeService(options: Options) -> Service:
    from twisted.internet import reactor

    # Timers must not follow the wall clock: a step of it would end every session. No timer exists yet.
    reactor.seconds = time.monotonic  # type: ignore[method-assign]
    twistd = {} if options.parent is None else options.parent
    drops_privileges = any(twistd.get(name) is not None for name in _ANOTHER_USER)
    return GatewayService(options.settings, cast(IReactorCore, reactor), StartReport(twistd), drops_privileges)


class GatewayService(Service):
    _log = Logger()

    def __init__(self, settings: Settings, reactor: Any, report: StartReport, drops_privileges: bool = False) -> None:
        self._drops_privileges = drops_privileges
        self._settings = settings
        self._reactor = reactor
        self._report = report
        self._levels = LogLevels(globalLogPublisher, settings.log_level)
        self._plugins: list[Plugin] | None = None
        self._gateway: Gateway | None = None
        self._control: ControlSocket | None = None
        self._port_file: PortFile | None = None
        self._has_failed = False

    def privilegedStartService(self) -> None:
        """
        Import the handlers before twistd drops privileges: an unprivileged user may not be able to read every module.
        """
        super().privilegedStartService()
        if self._drops_privileges:
            for module in _LATE_MODULES:
                import_module(module)
        reopen_on_hangup(self._reactor)  # the log files are open now
        with suppress(Exception):  # the start of the gateway raises it again
            self._plugins = discover(self._settings.handlers)

    def startService(self) -> None:
        super().startService()
        self._report.begin()
        self._reactor.callWhenRunning(self._levels.start)  # under `twist` logging begins then
        failures: list[Failure] = []
        at_once = True

        def failed(failure: Failure) -> None:
            if at_once:
                failures.append(failure)
            elif self.running:  # else it is stopping already
                self._give_up(failure)

        Deferred.fromCoroutine(self._start()).addErrback(failed)
        at_once = False
        if failures:  # the reactor does not run yet
            self._report_failure(failures[0])
            raise SystemExit(_exit_code(failures[0]))

    def stopService(self) -> Deferred[None]:
        super().stopService()
        self._ignore_signals()
        return Deferred.fromCoroutine(self._stop())

    async def _start(self) -> None:
        allow_many_files()
        keep_freed_memory()
        gateway = self._gateway = Gateway(self._settings, self._reactor, plugins=self._plugins)
        gateway.parts.service(ProcessLog).levels = self._levels
        bound = await gateway.start()
        try:
            self._port_file = self._prepare_port_file(bound)
            self._control = await self._open_control(gateway)
        except BaseException:
            if self._port_file:
                self._port_file.remove()
            await gateway.undo_start()
            raise
        collect_cycles_seldom()
        return_freed_memory()
        self._reactor.callWhenRunning(self._become_ready, gateway, bound)  # only then can a signal stop it

    def _prepare_port_file(self, bound: list[Address]) -> PortFile | None:
        path = self._settings.port_file
        try:
            return PortFile(path, bound) if path else None
        except OSError as error:
            raise _unwritable(path, error) from None

    async def _open_control(self, gateway: Gateway) -> ControlSocket:
        """
        Called last, because a later failure of the start would leave the socket file behind.
        """
        rows, profiler = plugin_rows(gateway.registry), Profiler(self._reactor)
        connections = Connections(gateway.connections, self._reactor)
        answers = commands(gateway.reasons, rows, self._levels, profiler, connections)
        control = ControlSocket(self._settings.control_socket, answers, self._reactor)
        await control.open()
        return control

    def _become_ready(self, gateway: Gateway, bound: list[Address]) -> None:
        try:
            self._publish_port_file()
            self._say_ready(gateway, bound)
        except Exception:
            self._give_up(Failure())

    def _publish_port_file(self) -> None:
        if self._port_file:
            try:
                self._port_file.publish()
            except OSError as error:
                raise _unwritable(self._settings.port_file, error) from None

    def _say_ready(self, gateway: Gateway, bound: list[Address]) -> None:
        where = ", ".join(_place(*each) for each in zip(self._settings.listen, bound, strict=True))
        line = f"kgateway {__version__} is ready: {where}; {gateway.broker.description}"
        if self._report.has_log:
            self._log.info("{line}", line=line)
        if self._report.is_daemon:
            line = "; ".join([line, f"process {os.getpid()}", *(f"log in {file.path}" for file in log_files())])
        self._report.ready(f"{formatTime(time.time())} {line}")

    async def _stop(self) -> None:
        try:
            if self._control:
                await self._control.close()
            if self._gateway:
                await (self._gateway.undo_start() if self._has_failed else self._gateway.stop())
            if self._port_file:
                self._port_file.remove()
        finally:
            self._levels.stop()

    def _ignore_signals(self) -> None:
        """
        Ignore further signals to stop. Twisted would take the second one for an error.
        """
        for number, name in ((signal.SIGINT, "sigInt"), (signal.SIGTERM, "sigTerm")):
            if signal.getsignal(number) == getattr(self._reactor, name, None):
                signal.signal(number, lambda *_: self._log.info("The gateway is about to stop; only a kill is faster."))

    def _give_up(self, failure: Failure) -> None:
        self._has_failed = True
        self._report_failure(failure)
        self._reactor.addSystemEventTrigger("after", "shutdown", os._exit, _exit_code(failure))
        self._reactor.stop()

    def _report_failure(self, failure: Failure) -> None:
        error: BaseException | str | None = failure.value
        if not isinstance(error, _FORESEEN):
            error = f"{type(error).__name__}: {error}; the log has the traceback"
            self._log.failure(CANNOT_START, failure, error=error)
        elif self._report.has_log:
            self._log.critical(CANNOT_START, error=error)
        self._report.failed(CANNOT_START.format(error=error))


def _exit_code(failure: Failure) -> int:
    return MISTAKE if failure.check(*_MISTAKES) else _FAILED


def _unwritable(path: str | None, error: OSError) -> StartError:
    kind = StartMistake if StartMistake.fits(error) else StartError
    return kind(f"--port-file {path} cannot be written: {error.strerror}")


def _place(listener: Listener, address: Address) -> str:
    """
    Where a listener can be reached, as people read it.
    """
    return f"{listener.title} on {listener.endpoint if address == NOWHERE else address}"
