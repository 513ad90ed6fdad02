"""
A folder of logs behind HTTP: what is in it is what is in a folder of this machine.
"""

from collections.abc import Generator, Iterator
from typing import cast

from kgateway.spark.folder import FolderLogs
from kgateway.spark.logs import Window
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_ahead import one_ahead
from kgateway.spark.remote_files import RemoteFiles
from kgateway.spark.remote_paths import UrlPath
from kgateway.spark.servers import ServerLogs


class RemoteFolderLogs(FolderLogs):
    """
    The logs in it.
    """

    def __init__(
        self, path: UrlPath, access: Access, servers: ServerLogs | None = None, *, committed_only: bool
    ) -> None:
        self._remote = RemoteFiles(path.origin, access)
        super().__init__(path, self._remote, servers, committed_only=committed_only)

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        return one_ahead(cast(Generator[Window, None, None], super().windows(wanted)))

    def close(self) -> None:
        super().close()
        self._remote.close()
