"""
A folder of this machine behind HTTP, with ranges and listings as a filer of SeaweedFS serves them, and with injected
faults.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

_FOLDER, _FILE = 0o20000000755, 0o644
_LIMIT = 1_000

Fault = Callable[["Handler"], bool]  # whether it has answered


class Asked(NamedTuple):
    path: str
    headers: Any


class Served(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.fault: Fault = lambda _: False
        self.told: list[Asked] = []
        self.readers = ExitStack()  # what is closed before it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Clients may disconnect.
        """


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Served

    def do_GET(self) -> None:
        self.server.told.append(Asked(self.path, self.headers))
        if self.server.fault(self):
            return
        path = self.server.root / unquote(urlsplit(self.path).path).strip("/")
        if path.is_dir():
            self.answer(200, self._page(path), {"Content-Type": "application/json"})
        elif path.is_file():
            self._file(path)
        else:
            self.answer(404)

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, size: int = -1) -> None:
        """
        Send a body, with a Content-Length that may be wrong.
        """
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if size < 0 else size))
        self.end_headers()
        self.wfile.write(body)

    def _page(self, folder: Path) -> bytes:
        query = parse_qs(urlsplit(self.path).query)
        after, limit = query.get("lastFileName", [""])[0], min(int(query["limit"][0]), _LIMIT)
        found = sorted(path for path in folder.iterdir() if path.name > after)
        return json.dumps(
            {
                "Path": f"/{folder.relative_to(self.server.root)}",
                "Entries": [_entry(path, self.server.root) for path in found[:limit]] or None,
                "LastFileName": found[:limit][-1].name if found else "",
                "ShouldDisplayLoadMore": len(found) > limit,
            }
        ).encode()

    def _file(self, path: Path) -> None:
        data, wanted = path.read_bytes(), re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            self.answer(200, data)
            return
        start, stop = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
        if start >= len(data):
            self.answer(416, b"no such range", {"Content-Range": f"bytes */{len(data)}"})
        else:
            self.answer(206, data[start:stop], {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"})

    def log_message(self, *arguments: Any) -> None:
        """
        Log nothing.
        """


def _entry(path: Path, root: Path) -> dict[str, Any]:
    is_folder, told = path.is_dir(), path.stat()
    return {
        "FullPath": f"/{path.relative_to(root)}",
        "Mtime": datetime.fromtimestamp(int(told.st_mtime), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Mode": _FOLDER if is_folder else _FILE,
        "FileSize": 0 if is_folder else told.st_size,
    }


@contextmanager
def serving(root: Path) -> Iterator[Served]:
    server = Served(root)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.readers.close()
        server.shutdown()
        server.server_close()
        thread.join()
