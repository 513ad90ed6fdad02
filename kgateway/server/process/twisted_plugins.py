"""
The modules that others than Twisted have put into `twisted/plugins`, in any folder of `sys.path`. They are found
without Twisted, because they decide how it is imported (tls.py).
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules

_PACKAGE = "twisted.plugins"
OWN_MODULE = f"{_PACKAGE}.kgateway_plugin"  # the command for twistd
_OF_TWISTED = b"Twisted Matrix Laboratories"  # in all modules of its own but one
_OF_TWISTED_TOO = "twisted_trial"


def modules_dropped_in() -> Iterator[str]:
    for module in iter_modules(str(Path(folder, *_PACKAGE.split("."))) for folder in sys.path):
        source = Path(getattr(module.module_finder, "path", ""), f"{module.name}.py")
        if module.name != _OF_TWISTED_TOO and not (source.is_file() and _OF_TWISTED in source.read_bytes()):
            yield f"{_PACKAGE}.{module.name}"
