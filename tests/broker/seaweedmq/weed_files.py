"""
The files of a filer, found by its listings over HTTP.
"""

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster

_SECONDS = 30
_FOLDER = 1 << 31  # in a mode, as Go has it


def files(cluster: DevCluster, folder: str) -> Iterator[str]:
    """
    The paths of all files below a folder.
    """
    listing = Request(f"http://{cluster.filer}{folder}/?limit=10000", headers={"Accept": "application/json"})
    with urlopen(listing, timeout=_SECONDS) as answer:
        for entry in json.load(answer)["Entries"] or []:
            path = entry["FullPath"]
            yield from files(cluster, path) if entry["Mode"] & _FOLDER else [path]
