"""
An archive as it was left, put in order by the job that works on it now.
"""

from dataclasses import replace

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.holding import forget_the_killed
from kgateway.spark.archive.manifest import Manifest
from kgateway.spark.archive.tiles import tile_of_name


def taken_over(folder: Folder, found: Manifest) -> Manifest:
    """
    The newest state, which no other job can change any more. What is of its plan stays where it is.
    """
    folder.publish(found)
    taken = folder.manifests.commit(replace(found, leaving=()))
    folder.clean([name for name in folder.staged_names() if _is_planned(taken, name)])
    forget_the_killed(folder)
    return taken


def _is_planned(manifest: Manifest, name: str) -> bool:
    tile = tile_of_name(manifest.identity.topic, name)
    return tile is not None and any(
        partition == tile.partition and start <= tile.first and tile.last < end
        for partition, start, end in manifest.planned
    )
