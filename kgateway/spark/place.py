"""
Where the logs of a query are, as it goes to the tasks.
"""

from dataclasses import dataclass, field
from pathlib import PurePath

from kgateway.spark.files import LocalFiles
from kgateway.spark.folder import FolderLogs
from kgateway.spark.logs import Logs
from kgateway.spark.patience import Servers
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_folder import RemoteFolderLogs
from kgateway.spark.remote_paths import UrlPath
from kgateway.spark.servers import ServerLogs


@dataclass(frozen=True, slots=True)
class Place:
    """
    Servers, a folder, a folder of which servers tell how far it may be read, or a filer with SeaweedMQ's topics.
    """

    servers: Servers | None = None
    folder: PurePath | None = None
    filer: UrlPath | None = None
    from_parquet: bool = False  # in the filer
    access: Access = field(default_factory=Access)

    def open(self, *, planning: bool) -> Logs:
        """
        The logs. A task that reads files has no need to ask servers.
        """
        if self.filer is not None:
            from kgateway.spark.filer.logs import FilerLogs  # needs what only SeaweedMQ needs

            return FilerLogs(self.filer, self.access, from_parquet=self.from_parquet)
        if self.folder is None:
            assert self.servers, "either is named"
            return ServerLogs(self.servers)
        told_by = ServerLogs(self.servers) if self.servers and planning else None
        committed_only = bool(self.servers and self.servers.committed_only)
        if isinstance(self.folder, UrlPath):
            return RemoteFolderLogs(self.folder, self.access, told_by, committed_only=committed_only)
        return FolderLogs(self.folder, LocalFiles(), told_by, committed_only=committed_only)
