"""
Commands that ask a running gateway over its control socket.
"""

import os
from argparse import ArgumentParser, Namespace
from typing import Any

from kgateway.cli.common.errors import UNREACHABLE, CommandError, UsageError
from kgateway.control.client import ControlError, ControlUsageError, NoGateway, ask


def add_socket(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--control-socket",
        metavar="PATH",
        default=os.environ.get("KGATEWAY_CONTROL_SOCKET") or "kgateway.sock",
        help="the control socket of the gateway (default $KGATEWAY_CONTROL_SOCKET, else kgateway.sock in this folder)",
    )


def answer(options: Namespace, command: str, arguments: dict[str, Any], **waiting: Any) -> Any:
    """
    The gateway's answer; CommandError if it refuses or does not answer.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return ask(options.control_socket, command, given, **waiting)
    except ControlUsageError as error:
        raise UsageError(str(error)) from error
    except NoGateway as error:
        raise CommandError(str(error), code=UNREACHABLE) from error
    except ControlError as error:
        raise CommandError(str(error)) from error
