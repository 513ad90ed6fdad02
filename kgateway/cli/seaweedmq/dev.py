"""
`kgateway seaweedmq dev`: a cluster of SeaweedFS and SeaweedMQ on this machine, and a gateway before it.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from kgateway.broker.seaweed.dev.weed_process import ENDS, NotStarted, undisturbed
from kgateway.cli.common.errors import FAILED, MISTAKE, CommandError
from kgateway.cli.common.parser import Command, Parser, example_text
from kgateway.cli.common.values import positive
from kgateway.config.settings import read_settings
from kgateway.config.sources import SettingsError

if TYPE_CHECKING:
    from kgateway.broker.seaweed.dev.dev_cluster import DevCluster

_STOP_S = 20.0
_EXAMPLES = """\
kgateway seaweedmq dev --listen tcp:9092:interface=127.0.0.1 --seaweedmq-format batch
kgateway seaweedmq dev --filers 3 --brokers 2 --flush-interval-s 60
"""
_MOST = 9
_SERVERS = {
    "brokers": "how many brokers of SeaweedMQ to start",
    "filers": "how many filers to start; they share one store",
    "volume_servers": "how many volume servers to start",
}


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        type=Path,
        help="where to keep the data for the next start (default: it is deleted at the end)",
    )
    for name, what in _SERVERS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(
            flag, metavar="N", type=partial(positive, most=_MOST), default=1, help=f"{what} (default 1)"
        )
    parser.add_argument(
        "--flush-interval-s",
        metavar="SECONDS",
        type=positive,
        default=1,
        help="how often brokers write messages to files (default 1; SeaweedMQ's own default is 5)",
    )
    parser.unknown_dest = "gateway"
    parser.epilog = "All other options are those of `kgateway serve`, for the gateway.\n\n" + example_text(_EXAMPLES)


def _run(options: Namespace) -> Iterator[str]:
    """
    Print the addresses and folders, and wait for the gateway to exit.
    """
    try:
        yield from _lines(options)
    except NotStarted as error:
        raise CommandError(str(error)) from None


DEV = Command(_add_arguments, _run, has_json=False)


def _lines(options: Namespace) -> Iterator[str]:
    from kgateway.broker.seaweed.dev.dev_cluster import DevCluster, Shape

    servers = {name: getattr(options, name) for name in _SERVERS}
    with _signals_once(), ExitStack() as stack:
        folder = options.folder or _temporary(stack)
        cluster = DevCluster(folder, shape=Shape(**servers, flush_interval_s=options.flush_interval_s))
        command, control_socket = _command(options, cluster, folder)
        print("starting a cluster; this takes a few seconds", file=sys.stderr, flush=True)
        stack.callback(cluster.kill)  # a signal may interrupt an orderly end
        stack.enter_context(cluster)
        filers, brokers = ",".join(cluster.filer_addresses), ",".join(cluster.broker_addresses)
        yield f"master  {','.join(cluster.masters)}    filer {filers}    broker {brokers}"
        yield f"logs    {folder}"
        yield f"why     kgateway why --control-socket {shlex.quote(control_socket)}"
        sys.stdout.flush()
        failed = _has_failed(command)
    if failed:
        raise SystemExit(FAILED)
    yield "everything has stopped"


def _has_failed(command: list[str]) -> bool:
    """
    Whether the gateway failed, rather than being ended by a signal to this process.
    """
    try:
        with ExitStack() as stack:
            with undisturbed():
                gateway = subprocess.Popen(command, start_new_session=True)  # only this process signals it
                stack.callback(_end, gateway)
            return gateway.wait() != 0
    except KeyboardInterrupt:
        return False


def _end(gateway: subprocess.Popen[bytes]) -> None:
    _ignore_signals()
    gateway.terminate()
    try:
        gateway.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        gateway.kill()
        gateway.wait()


@contextmanager
def _signals_once() -> Iterator[None]:
    """
    Clean up on SIGTERM and SIGHUP too, and ignore all signals meanwhile.
    """
    before = {each: signal.getsignal(each) for each in ENDS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:  # set by `nohup`
            signal.signal(each, _interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is _interrupt:  # else the process ends
                signal.signal(each, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for each in ENDS:
        signal.signal(each, signal.SIG_IGN)


def _temporary(stack: ExitStack) -> Path:
    try:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kgateway-seaweedmq-")))
    except OSError as error:
        raise NotStarted(f"cannot create a temporary folder: {error.strerror}") from None


def _command(options: Namespace, cluster: "DevCluster", folder: Path) -> tuple[list[str], str]:
    """
    The command that starts the gateway, and its control socket; CommandError where its options are wrong.
    """
    given = [option for option in options.gateway if option != "--"]
    broker = f"seaweedmq:{','.join(cluster.masters)}"
    settings = ["--broker", broker, "--control-socket", str(folder / "kgateway.sock"), *given]
    try:
        control_socket = read_settings(settings, os.environ).control_socket
    except SettingsError as mistake:
        raise CommandError(str(mistake), MISTAKE) from None
    return [sys.executable, "-m", "kgateway", "serve", *settings], control_socket
