"""
The options of `twistd kgateway`: Twisted's side of the settings.

What `--help` and the shell's completion show comes from the table in `settings`; the reading is its own, for Twisted's
knows neither the environment nor a file. All that can be refused is refused while options are parsed: only then does
twistd show a message instead of a traceback.
"""

import os
import sys
from collections.abc import Sequence

from twisted.internet.endpoints import serverFromString
from twisted.python import usage

from kgateway import __version__
from kgateway.config.listeners import Listener
from kgateway.config.settings import OPTIONS, Settings, read_settings
from kgateway.config.sources import Option, SettingsError
from kgateway.server.brokers import check_broker


def _parameter(row: Option) -> list[str | None]:
    return [row.flag.removeprefix("--"), None, row.shown_default or None, f"{row.meaning} ({row.allowed})"]


class Options(usage.Options):
    """
    Reads the settings of the gateway that is to run.
    """

    optParameters = [_parameter(row) for row in OPTIONS.values()]
    longdesc = "Each option may also stand in a TOML file or in the environment; docs/configuration.md tells how."

    settings: Settings

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """
        Read the settings, or answer `--help` and `--version`.
        """
        arguments = sys.argv[1:] if options is None else options
        if "--help" in arguments:
            self.opt_help()
        if "--version" in arguments:
            self.opt_version()
        try:
            self.settings = read_settings(arguments, os.environ)
            check_broker(self.settings.broker)
        except SettingsError as error:
            raise usage.UsageError(str(error)) from None
        self.postOptions()

    def postOptions(self) -> None:
        """
        Have Twisted look at the endpoints while a refusal still reaches the user as such.
        """
        for listener in self.settings.listen:
            _check_endpoint(listener)

    def opt_version(self) -> None:
        """
        Display the versions of kgateway and Twisted and exit.
        """
        sys.stdout.write(f"kgateway {__version__}\n")
        super().opt_version()


def _check_endpoint(listener: Listener) -> None:
    try:
        serverFromString(None, listener.endpoint)  # nothing listens yet, so no reactor is asked
    except (ImportError, LookupError, OSError, TypeError, ValueError) as error:  # each endpoint type has its own
        advice = "write one such as tcp:9092:interface=127.0.0.1"
        raise usage.UsageError(f"listen: {listener.endpoint!r} is no endpoint of Twisted ({error}); {advice}") from None
