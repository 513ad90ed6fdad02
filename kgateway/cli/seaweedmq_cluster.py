"""
What those subcommands of `kgateway seaweedmq` share that look into a cluster: which one it is, and a reactor meanwhile.
"""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from kgateway.broker.seaweed.addresses import master_addresses
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweed.secured import Secured
from kgateway.broker.seaweed.security_file import BadSecurity, SecurityFile
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.outside import NotThere, Outside
from kgateway.observe.plain import printable

FOUND, UNREADABLE = 1, 2  # exit codes

Say = Callable[[str], None]
Work = Callable[[Outside, Say], Awaitable[int]]


def add_cluster(parser: ArgumentParser) -> None:
    """
    The options that say which cluster is meant.
    """
    parser.add_argument(
        "--masters",
        metavar="HOST:PORT,...",
        required=True,
        type=_as_argument(master_addresses),
        help="the masters of the cluster; one that answers is enough",
    )
    parser.add_argument("--filer-group", metavar="GROUP", default="", help="the filerGroup of its filers and brokers")
    parser.add_argument(
        "--security",
        metavar="FILE",
        type=_as_argument(lambda path: Secured(SecurityFile(Path(path)))),
        help="the security.toml with the certificates and keys that it wants",
    )


def topic_name(text: str) -> str:
    """
    An argument that names a topic: what can be a folder of SeaweedMQ's.
    """
    if not text or "/" in text:
        raise ArgumentTypeError(f"{text!r} is no name of a topic")
    return text


def look(options: Namespace, work: Work) -> None:
    """
    Look into the cluster; the program ends then, with what `work` returns.
    """
    react(lambda reactor: Deferred.fromCoroutine(_look(reactor, options, work)))


async def _look(reactor: Any, options: Namespace, work: Work) -> None:
    seaweed = Seaweed(options.masters, reactor, filer_group=options.filer_group, security=options.security)
    code = UNREADABLE
    try:
        code = await work(Outside(seaweed, reactor), _say)
        sys.stdout.flush()
    except NotThere as error:
        _fail(options, str(error))
    except CLUSTERS_ERRORS as error:
        masters = ",".join(map(str, options.masters))
        reason = error.message if isinstance(error, RpcError) else error
        _fail(options, f"the cluster of {masters} cannot be read: {reason}")
    except BrokenPipeError:  # the reader, `head` say, has seen enough; nothing may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    await seaweed.close()
    raise SystemExit(code)


def _say(line: str) -> None:
    print("\n".join(map(printable, line.split("\n"))), flush=True)


def _fail(options: Namespace, reason: str) -> None:
    print(f"kgateway seaweedmq {options.kind}: {printable(reason)}", file=sys.stderr)


def _as_argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """
    Reads an argument, and says in its own words what is wrong with it.
    """

    def argument(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, BadSecurity) as error:
            raise ArgumentTypeError(str(error)) from None

    return argument
