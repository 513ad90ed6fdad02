"""
The options of `twistd kgateway` and `kgateway serve`.

Twisted shows them in `--help` and in the completion of the shell. They are read by `kgateway.config`, because Twisted's
parser knows neither the environment nor a file. What is impossible is refused before the process becomes a daemon, in
one line, and with exit code 2: Twisted would print it below all options.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from twisted.internet.endpoints import serverFromString
from twisted.python import usage

from kgateway import __version__
from kgateway.compilation import form
from kgateway.config.listeners import NEEDS_BOTH, Listener, parameters, suggestion
from kgateway.config.settings import OPTION_SOURCES, OPTIONS, Settings, read_settings
from kgateway.config.sources import ADVICE, Check, Option, SettingsError
from kgateway.extras import not_installed
from kgateway.server.brokers import check_broker

MISTAKE = 2  # the exit code for options that cannot be used
_SERVE = "kgateway serve"


def _parameter(row: Option) -> list[str | None]:
    return [row.flag.removeprefix("--"), None, row.shown_default or None, f"{row.meaning} ({row.allowed})"]


class Options(usage.Options):
    optParameters = [_parameter(row) for row in OPTIONS.values()]
    longdesc = OPTION_SOURCES

    settings: Settings

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        arguments = sys.argv[1:] if options is None else options
        if "--help" in arguments:
            self.opt_help()
        if "--version" in arguments:
            self.opt_version()
        try:
            checks: dict[str, Check] = {"broker": check_broker, "listen": check_endpoint}
            self.settings = read_settings(arguments, os.environ, checks, _advice())
        except SettingsError as error:
            _refuse(error)
        self.postOptions()

    def getSynopsis(self) -> str:
        return f"Usage: {_SERVE} [options]" if _program() == _SERVE else str(super().getSynopsis())

    def opt_version(self) -> None:
        """
        Display the versions of kgateway and Twisted and exit.
        """
        sys.stdout.write(f"kgateway {__version__} ({form()})\n")
        super().opt_version()


def check_endpoint(listener: Listener) -> None:
    """
    Raise ValueError if Twisted has no such endpoint.
    """
    try:
        serverFromString(None, listener.endpoint)  # parsing needs no reactor
    except ImportError as error:
        raise ValueError(not_installed(error, "tls")) from None
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
    except Exception as error:  # each type of endpoint has its own
        if listener.endpoint.startswith("ssl:"):
            raise ValueError(_fault_of_pem(parameters(listener.endpoint), error)) from None
        if isinstance(error, LookupError) and listener.endpoint.startswith("systemd:"):
            raise ValueError("systemd has passed no such socket to this process") from None
        raise ValueError(f"Twisted cannot open it: {error}; {suggestion(listener.endpoint)}") from None


def _fault_of_pem(given: Mapping[str, str], error: Exception) -> str:
    """
    What is wrong with the files of an endpoint with TLS. The errors of OpenSSL name no file.
    """
    from OpenSSL import crypto

    key_file = given["privateKey"]
    certificate_file = given.get("certKey", key_file)  # one file may have both
    key, certificate = (Path(file).read_bytes() for file in (key_file, certificate_file))
    try:
        crypto.load_privatekey(
            crypto.FILETYPE_PEM, certificate + b"\n" + key, b""
        )  # without a question on the terminal
    except crypto.Error:
        return f"{key_file} has no private key in PEM format that OpenSSL can read without a password"
    try:
        crypto.load_certificate(crypto.FILETYPE_PEM, certificate + b"\n" + key)
    except crypto.Error:
        return f"{certificate_file} has no certificate in PEM format" if "certKey" in given else NEEDS_BOTH
    return f"Twisted cannot open it: {error}"


def _refuse(error: SettingsError) -> NoReturn:
    print(f"{_program()}: {error}", file=sys.stderr)
    raise SystemExit(MISTAKE)


def _advice() -> str:
    return ADVICE if _program() == _SERVE else f"{ADVICE}, and options of twistd come before the word kgateway"


def _program() -> str:
    program = Path(sys.argv[0]).name
    return program if program == _SERVE else f"{program} kgateway"
