"""
`kgateway seaweedmq dev`: a cluster of SeaweedFS and SeaweedMQ on this machine, and a gateway before it.
"""

import os
import signal
import subprocess
import sys
import tempfile
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev_process import ENDS, NotStarted, undisturbed
from kgateway.config.settings import read_settings
from kgateway.config.sources import SettingsError

_FAILED, _MISTAKE = 1, 2
_STOP_S = 20.0


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be set.
    """
    parser.add_argument(
        "--folder", type=Path, help="where all of it is kept, and found again; without it, it is gone at the end"
    )
    parser.add_argument(
        "gateway", metavar="-- OPTION", nargs=REMAINDER, help="options of the gateway, as `kgateway serve` has them"
    )
    parser.epilog = "Example: kgateway seaweedmq dev -- --listen tcp:9092:interface=127.0.0.1 --seaweedmq-format batch"


def run(options: Namespace) -> Iterator[str]:
    """
    Where everything is; then it waits for the gateway to end.
    """
    try:
        yield from _run(options)
    except NotStarted as error:
        print(f"kgateway seaweedmq dev: {error}", file=sys.stderr)
        raise SystemExit(_FAILED) from None


def _run(options: Namespace) -> Iterator[str]:
    with _told_once(), ExitStack() as stack:
        folder = options.folder or _temporary(stack)
        cluster = DevCluster(folder)
        command = _command(options, cluster, folder)
        print("starting a cluster; it takes some seconds", file=sys.stderr, flush=True)
        stack.callback(cluster.kill)  # whoever tells it to end may do so while it ends
        stack.enter_context(cluster)
        yield f"master  {','.join(cluster.masters)}    filer {cluster.filer}    broker {cluster.broker_address}"
        yield f"logs    {folder}"
        sys.stdout.flush()
        failed = _has_failed(command)
    if failed:
        raise SystemExit(_FAILED)
    yield "all of it has ended"


def _has_failed(command: list[str]) -> bool:
    """
    Whether the gateway has ended otherwise than in order, or because this process was told to end.
    """
    try:
        with ExitStack() as stack:
            with undisturbed():
                gateway = subprocess.Popen(command, start_new_session=True)  # it is told by this process alone
                stack.callback(_end, gateway)
            return gateway.wait() != 0
    except KeyboardInterrupt:
        return False


def _end(gateway: subprocess.Popen[bytes]) -> None:
    _be_told_no_more()
    gateway.terminate()
    try:
        gateway.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        gateway.kill()
        gateway.wait()


@contextmanager
def _told_once() -> Iterator[None]:
    """
    Leave nothing behind, either, where the process is told to end, or its terminal is closed; and in peace, whatever is
    told meanwhile.
    """
    before = {each: signal.getsignal(each) for each in ENDS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(each, _told)
    try:
        yield
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is _told:  # else the process ends
                signal.signal(each, handler)


def _told(number: int, frame: FrameType | None) -> None:
    _be_told_no_more()
    raise KeyboardInterrupt


def _be_told_no_more() -> None:
    for each in ENDS:
        signal.signal(each, signal.SIG_IGN)


def _temporary(stack: ExitStack) -> Path:
    try:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kgateway-seaweedmq-")))
    except OSError as error:
        raise NotStarted(f"there is no place for a temporary folder: {error.strerror}") from None


def _command(options: Namespace, cluster: DevCluster, folder: Path) -> list[str]:
    """
    What starts the gateway; a mistake in its options ends the program.
    """
    given = [option for option in options.gateway if option != "--"]
    broker = f"seaweedmq:{','.join(cluster.masters)}"
    settings = ["--broker", broker, "--control-socket", str(folder / "kgateway.sock"), *given]
    try:
        read_settings(settings, os.environ)
    except SettingsError as mistake:
        print(f"kgateway seaweedmq dev: {mistake}", file=sys.stderr)
        raise SystemExit(_MISTAKE) from None
    return [sys.executable, "-m", "kgateway", "serve", *settings]
