"""
Where the logs of a query are, as it goes to the tasks.
"""

from dataclasses import dataclass
from pathlib import Path

from kgateway.spark.files import LocalFiles
from kgateway.spark.folder import FolderLogs
from kgateway.spark.logs import Logs
from kgateway.spark.patience import Servers
from kgateway.spark.servers import ServerLogs


@dataclass(frozen=True, slots=True)
class Place:
    """
    Servers, a folder, or a folder of which servers tell how far it may be read.
    """

    servers: Servers | None = None
    folder: Path | None = None

    def open(self, *, planning: bool) -> Logs:
        """
        The logs. A task that reads files has no need to ask servers.
        """
        if self.folder is None:
            assert self.servers, "either is named"
            return ServerLogs(self.servers)
        told_by = ServerLogs(self.servers) if self.servers and planning else None
        committed_only = bool(self.servers and self.servers.committed_only)
        return FolderLogs(self.folder, LocalFiles(), told_by, committed_only=committed_only)
