"""
`kgateway seaweedmq dev`: a cluster of SeaweedFS and SeaweedMQ on this machine, and a gateway before it.
"""

import signal
import subprocess
import sys
import tempfile
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev_process import NotStarted

_FAILED = 1


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
    with ExitStack() as stack:
        stack.enter_context(_ended_like_ctrl_c())
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kgateway-seaweedmq-")))
        print("starting a cluster; it takes some seconds", file=sys.stderr, flush=True)
        cluster = stack.enter_context(DevCluster(folder))
        yield f"master  {','.join(cluster.masters)}    filer {cluster.filer}    broker {cluster.broker_address}"
        yield f"logs    {folder}"
        sys.stdout.flush()
        gateway = stack.enter_context(subprocess.Popen(_command(options, cluster, folder)))
        try:
            failed = gateway.wait() != 0
        except KeyboardInterrupt:
            gateway.terminate()  # of Ctrl-C the terminal has told it, too
            gateway.wait()
            failed = False
    if failed:
        raise SystemExit(_FAILED)
    yield "all of it has ended"


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """
    Leave nothing behind, either, where the process is told to end.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _command(options: Namespace, cluster: DevCluster, folder: Path) -> list[str]:
    given = [option for option in options.gateway if option != "--"]
    broker = f"seaweedmq:{','.join(cluster.masters)}"
    socket = ["--control-socket", str(folder / "kgateway.sock")]
    return [sys.executable, "-m", "kgateway", "serve", "--broker", broker, *socket, *given]
