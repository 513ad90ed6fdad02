"""
A tree of sources with the compiled modules of a wheel: `python compiled_tree.py DISTRIBUTIONS FOLDER`.

The sdist is unpacked, and so are the compiled modules of the wheel that was built from it, each beside its source, as
in an installation. So all tests of a checkout can run there, including those that read the sources, and use compiled
modules, whether they import kgateway from this tree or from the installed wheel.
"""

import sys
import tarfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zipfile import ZipFile


def unpack(distributions: Path, folder: Path) -> None:
    """
    Unpack the only sdist and the only wheel of a folder.
    """
    [sdist], [wheel] = distributions.glob("*.tar.gz"), distributions.glob("*.whl")
    with tarfile.open(sdist) as archive:
        for member in archive:
            member.name = member.name.partition("/")[2]
            if member.name:
                archive.extract(member, folder)
    with ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if name.endswith(EXTENSION_SUFFIXES[0])]
        archive.extractall(folder, compiled)


if __name__ == "__main__":
    unpack(*map(Path, sys.argv[1:]))
