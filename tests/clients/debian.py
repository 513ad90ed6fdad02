"""
Installs the named Debian packages whose commands are missing: `python debian.py kcat`. Packages for Debian's own
Python have no command, and are looked up in Debian's database.
"""

import os
import shutil
import subprocess
import sys


def install(packages: list[str]) -> None:
    apt_get = shutil.which("apt-get")
    if not apt_get:
        sys.exit(f"{' and '.join(packages)} must be there, and only Debian's apt-get is known here to install it")
    unasking = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for task in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run([apt_get, *task], env=unasking, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"apt-get cannot install {' and '.join(packages)}; its last words:\n{done.stderr[-1000:]}")


def is_installed(package: str) -> bool:
    """
    Whether it need not be installed.
    """
    if not package.startswith("python3-"):
        return shutil.which(package) is not None
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    if not shutil.which(query[0]):
        return False
    return subprocess.run(query, capture_output=True, check=False).stdout == b"installed"


missing = [name for name in sys.argv[1:] if not is_installed(name)]
if missing:
    install(missing)
