"""
A file behind HTTP as Python has files, for those who read such.
"""

import io

from kgateway.spark.remote_files import RemoteFiles
from kgateway.spark.remote_paths import UrlPath


class RemoteStream(io.RawIOBase):
    """
    Each read is a request.
    """

    def __init__(self, files: RemoteFiles, path: UrlPath) -> None:
        super().__init__()
        self._files = files
        self._path = path
        self._size = files.size(path)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = begin + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        data = self._files.part(self._path, self._position, left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data
