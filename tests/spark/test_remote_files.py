"""
Files behind HTTP: the requests, and the errors of servers that cannot, will not or do not answer.
"""

import base64
import json
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path, PurePath

import pytest

from kgateway.client.offsets import Extent
from kgateway.spark.errors import DataLost, TopicGone, Unreadable, WrongOption
from kgateway.spark.http.client import Access, RemoteError, UrlPath, url_path
from kgateway.spark.http.files import RemoteFiles, one_ahead
from kgateway.spark.logs import segments as segments_module
from kgateway.spark.logs.folder import RemoteFolderLogs
from kgateway.spark.logs.interface import Logs
from kgateway.spark.options import READ, Options
from kgateway.spark.query import location_of
from tests.spark.folders import ORDERS, batch, clean, offsets_in, segment
from tests.spark.remote_server import Handler, Served, serving

ALL = list(range(30))
SOON = Access(answer_s=5, patience_s=0.3)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """
    The folder of a stopped gateway with a partition of offsets 0 to 29 in three segments.
    """
    folder = tmp_path / "data of logs" / str(ORDERS)
    for base in (0, 10, 20):
        segment(folder, base, [batch(base + at, 2) for at in range(0, 10, 2)])
    clean(folder.parent)
    return folder


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


def logs(server: Served, access: Access = SOON) -> Logs:
    found = RemoteFolderLogs(url_path(f"{server.url}/data%20of%20logs/"), access, committed_only=False)
    server.readers.callback(found.close)
    return found


def files(server: Served) -> RemoteFiles:
    found = RemoteFiles(server.url, SOON)
    server.readers.callback(found.close)
    return found


def faulty(server: Served, fault: Callable[[Handler], None], times: int = 1, among: str = ".log") -> None:
    """
    Some requests for such files end in a fault.
    """
    left = [times]

    def answered(handler: Handler) -> bool:
        if among not in handler.path or not left[0]:
            return False
        left[0] -= 1
        fault(handler)
        return True

    server.fault = answered


@pytest.mark.parametrize(("start", "end"), [(0, 30), (3, 4), (9, 11), (5, 25), (29, 30), (12, 12)])
def test_offsets_equal_those_of_a_local_folder(orders: Path, served: Served, start: int, end: int) -> None:
    """
    Any range has the same offsets, and the log the same extent.
    """
    assert offsets_in(logs(served), start, end) == offsets_in(clean(orders.parent), start, end) == ALL[start:end]
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(0, 30)}
    assert logs(served).partitions() == {"orders": [ORDERS]}


def test_files_are_read_by_ranges(orders: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A request is for one window, or for one batch that is larger.
    """
    monkeypatch.setattr(segments_module, "WINDOW_BYTES", 200)
    assert offsets_in(logs(served), 0, 30) == ALL
    ranges = [re.findall(r"\d+", each.headers["Range"]) for each in served.told if "Range" in each.headers]
    assert max(int(last) - int(first) + 1 for first, last in ranges if int(last) < 1_000) == 200
    assert len(ranges) > 10


def test_folders_of_many_files(tmp_path: Path, served: Served) -> None:
    """
    Listings have several pages, and any names.
    """
    names = {".hidden", "c d%41", "ü&?#", *(f"{number:05}" for number in range(2_500))}
    for name in names:
        (tmp_path / name).write_bytes(b"x" * len(name))
    found = files(served)
    assert found.names(url_path(served.url)) == {name: len(name) for name in names}
    assert len(served.told) == 3
    for name in (".hidden", "c d%41", "ü&?#"):
        assert found.read(url_path(served.url) / name) == b"x" * len(name)


def test_large_files_and_ends(tmp_path: Path, served: Served) -> None:
    """
    A large file is read in parts, and there are no bytes behind its end.
    """
    data = bytes(range(256)) * (5 << 12)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "void").write_bytes(b"")
    found, root = files(served), url_path(served.url)
    assert found.read(root / "large") == data
    file = found.open(root / "large")
    assert (file.read(len(data) - 3, 10), file.read(len(data), 10), file.read(7, 0)) == (data[-3:], b"", b"")
    assert found.read(root / "void") == b""
    with pytest.raises(FileNotFoundError):
        found.read(root / "none")
    with pytest.raises(FileNotFoundError):
        found.names(root / "none")


def test_paths() -> None:
    """
    Paths are joined like others, and shown as URLs.
    """
    path = url_path("https://host:8888/a%20b/c/") / "d?e"
    assert (str(path), path.origin, path.target, path.name) == (
        "https://host:8888/a b/c/d?e",
        "https://host:8888",
        "/a%20b/c/d%3Fe",
        "d?e",
    )
    assert type(path.parent) is UrlPath
    assert (url_path("http://[::1]:1").origin, url_path("http://[::1]:1").target) == ("http://[::1]:1", "/")


BREAKS: dict[str, Callable[[Handler], None]] = {
    "503": lambda handler: handler.answer(503, b"overloaded"),
    "429": lambda handler: handler.answer(429),
    "half": lambda handler: handler.answer(206, b"half", {"Content-Range": "bytes 0-59/100"}, size=60),
    "closed": lambda handler: setattr(handler, "close_connection", True),
}


@pytest.mark.parametrize("how", BREAKS)
def test_broken_requests_are_repeated(orders: Path, served: Served, how: str) -> None:
    """
    Each offset is read once in spite of faults.
    """

    def fault(handler: Handler) -> None:
        BREAKS[how](handler)
        handler.close_connection = True

    faulty(served, fault, times=3)
    assert offsets_in(logs(served, Access(patience_s=20)), 0, 30) == ALL


@pytest.mark.parametrize("how", BREAKS)
def test_retries_end(orders: Path, served: Served, how: str) -> None:
    """
    The error says what was tried, for how long, and the last failure.
    """

    def fault(handler: Handler) -> None:
        BREAKS[how](handler)
        handler.close_connection = True

    faulty(served, fault, times=1_000)
    said = {
        "503": "HTTP 503 overloaded",
        "429": "HTTP 429",
        "half": "ended after 4 of",
        "closed": "Remote end",
    }
    words = rf"orders-0 in {served.url}.*cannot get .*.*\.log, tried for \d+ s: .*{said[how]}"
    with pytest.raises(Unreadable, match=words):
        offsets_in(logs(served), 0, 30)


def _wait(released: threading.Event) -> None:
    released.wait(30)


def test_a_server_that_hangs(orders: Path, served: Served) -> None:
    """
    The option limits the wait for an answer, which is asked for again.
    """
    released = threading.Event()
    faulty(served, lambda _: _wait(released))
    assert offsets_in(logs(served, Access(answer_s=0.2, patience_s=20)), 0, 30) == ALL
    released.set()


def test_refused_connections_are_retried(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        gone = logs(server)
    with pytest.raises(Unreadable, match=r"the folder http://127.*/data of logs cannot be read: .*tried for.*refused"):
        gone.partitions()


def test_an_unknown_host_is_an_error_at_once() -> None:
    wrong = RemoteFolderLogs(url_path("http://nowhere.invalid/logs"), Access(), committed_only=False)
    with pytest.raises(Unreadable, match=r"the folder http://nowhere.invalid/logs cannot be read: "):
        wrong.partitions()


def test_a_server_that_ignores_ranges(orders: Path, served: Served) -> None:
    """
    A server that would send a whole file is refused, unless the file is as small as the range.
    """
    whole = (orders / "00000000000000000000.log").read_bytes()
    faulty(served, lambda handler: handler.answer(200, whole), times=2, among="00000000000000000000.log")
    with pytest.raises(
        Unreadable, match=r"does not support ranges: .*00000000000000000000.log were requested, but it sent all"
    ):
        offsets_in(logs(served), 4, 6)
    faulty(served, lambda handler: handler.answer(200, whole[:5]), times=1)
    assert files(served).read(url_path(f"{served.url}/x.log")) == whole[:5]


@pytest.mark.parametrize("told", ["bytes 1-20/100", "bytes 0-99999999/100000000", "chapters 1-2/3"])
def test_a_server_that_sends_other_ranges(orders: Path, served: Served, told: str) -> None:
    """
    A range that was not requested is refused: its records would be taken for others.
    """
    faulty(served, lambda handler: handler.answer(206, bytes(20), {"Content-Range": told}), times=1)
    with pytest.raises(Unreadable, match=r"instead of .* from 0 on|does not support ranges"):
        offsets_in(logs(served), 0, 30)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            lambda handler: handler.answer(200, b"<html>", {"Content-Type": "text/html"}),
            "as a filer lists a folder: it sent text/html",
        ),
        (
            lambda handler: handler.answer(200, b"[]", {"Content-Type": "application/json"}),
            "it is not a page of a folder",
        ),
        (
            lambda handler: handler.answer(200, b"{", {"Content-Type": "application/json"}),
            "is not listed as by a filer",
        ),
        (lambda handler: handler.answer(301, b"", {"Location": "http://x/y"}), "it is at http://x/y, so name that"),
        (lambda handler: handler.answer(400, b"what?"), "HTTP 400 what?"),
        (
            lambda handler: handler.wfile.write(b"\0\0\6\4\0\0\0\0\0\0\5\0\0\x40\0\r\n\r\n"),
            "does not respond with HTTP: is it another port",
        ),
        (lambda handler: handler.answer(403), "HTTP 403: set kgateway.http.authorization to what it requires"),
    ],
)
def test_servers_that_are_no_filers(orders: Path, served: Served, fault: Callable[[Handler], None], said: str) -> None:
    """
    Each kind of wrong server has its own error, at once.
    """

    def ends(handler: Handler) -> None:
        fault(handler)
        handler.close_connection = True

    faulty(served, ends, among="limit=")
    with pytest.raises(Unreadable, match=re.escape(said)):
        logs(served, Access(patience_s=60)).partitions()


def test_a_listing_that_starts_over(tmp_path: Path, served: Served) -> None:
    """
    It is refused, because it would never end.
    """
    page = {"Entries": [{"FullPath": "/a", "Mode": 420, "FileSize": 1, "Mtime": "2026-01-01T00:00:00.123456789Z"}]}
    body = json.dumps(page | {"ShouldDisplayLoadMore": True}).encode()
    faulty(served, lambda handler: handler.answer(200, body, {"Content-Type": "application/json"}), 9, "limit=")
    with pytest.raises(RemoteError, match=r"the page after a starts again"):
        files(served).names(url_path(served.url))


def test_a_server_without_tls(served: Served) -> None:
    """
    The error says so at once.
    """
    wrong = RemoteFolderLogs(url_path(served.url.replace("http", "https")), Access(), committed_only=False)
    with pytest.raises(Unreadable, match=r"no TLS with https://127.0.0.1:\d+"):
        wrong.partitions()


def test_a_segment_deleted_while_it_is_read(orders: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Behind HTTP a deleted segment vanishes at once, which is reported as a loss; so is a deleted partition.
    """
    monkeypatch.setattr(segments_module, "WINDOW_BYTES", 200)
    seen = []

    def fault(handler: Handler) -> bool:
        if handler.path.endswith("00000000000000000000.log"):
            seen.append(handler.headers["Range"])
            if len(seen) == 4:
                (orders / "00000000000000000000.log").unlink()
        return False

    served.fault = fault
    with pytest.raises(DataLost, match=r"orders-0 begins with offset 10 now, but offsets \d to 9 were requested"):
        offsets_in(logs(served), 0, 30)
    for path in orders.iterdir():
        path.unlink()
    orders.rmdir()
    with pytest.raises(TopicGone, match=rf"orders-0 is not in {served.url}/data of logs any more"):
        offsets_in(logs(served), 10, 30)


def test_damage_is_reported_with_its_place(orders: Path, served: Served) -> None:
    """
    The error has the file's URL and the byte.
    """
    path = orders / "00000000000000000010.log"
    path.write_bytes(path.read_bytes()[:-1])
    data = bytearray(path.read_bytes())
    size = len(batch(10, 2))
    data[size + 16] = 1
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=rf"{served.url}/data of logs/orders-0/{path.name} is damaged at byte {size}:"):
        offsets_in(logs(served), 0, 30)


def test_required_headers(orders: Path, served: Served, tmp_path: Path) -> None:
    """
    A given header is sent with each request; a security.toml signs requests with a limited lifetime.
    """
    offsets_in(logs(served, Access(authorization="Basic x")), 0, 5)
    assert {each.headers["Authorization"] for each in served.told} == {"Basic x"}
    served.told.clear()
    file = tmp_path / "security.toml"
    file.write_text('[jwt.filer_signing.read]\nkey = "secret"\nexpires_after_seconds = 60\n')
    offsets_in(logs(served, Access(security_file=str(file))), 0, 5)
    kind, _, token = served.told[0].headers["Authorization"].partition(" ")
    assert kind == "Bearer"
    assert [*json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))] == ["exp"]
    faulty(served, lambda handler: handler.answer(401), 9, "")
    with pytest.raises(
        Unreadable, match=r"HTTP 401: it does not accept signatures made with `key` under \[jwt.filer_sig"
    ):
        logs(served, Access(security_file=str(file))).partitions()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kgateway.log.folder": "http://"}, "must be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "http://host:port/x"}, "must be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "http://u:p@host/x"}, "must be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "http://host/x?y"}, "must be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "s3://bucket/x"}, "must be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "/x", "kgateway.seaweed.security": "/none"}, "/none cannot be read"),
    ],
)
def test_wrong_options(given: dict[str, str], said: str) -> None:
    """
    Invalid URLs are refused before anything is asked.
    """
    with pytest.raises(WrongOption, match=re.escape(said)):
        location_of(Options(given, READ))


def test_options_name_a_folder_behind_http(orders: Path, served: Served) -> None:
    """
    Timeouts are those of the options for servers.
    """
    given = {"kgateway.log.folder": f"{served.url}/data%20of%20logs", "kafkaConsumer.pollTimeoutMs": "700"}
    place = location_of(Options(given | {"kafka.request.timeout.ms": "200"}, READ))
    assert place.access == Access(answer_s=0.2, patience_s=0.7)
    with closing(place.open(planning=False)) as found:
        assert offsets_in(found, 0, 30) == ALL


def test_one_piece_ahead() -> None:
    """
    One piece is made ahead; failures appear in order, and an abandoned generator is closed.
    """
    made: list[int] = []
    is_made, ended = threading.Semaphore(0), []

    def pieces() -> Generator[int, None, None]:
        try:
            for number in range(1, 5):
                made.append(number)
                is_made.release()
                if number == 4:
                    raise OSError("no fourth one")
                yield number
        finally:
            ended.append(threading.current_thread().name)

    found = one_ahead(pieces())
    assert next(found) == 1
    assert is_made.acquire(timeout=10)
    assert is_made.acquire(timeout=10)
    assert made == [1, 2]
    assert [next(found), next(found)] == [2, 3]
    with pytest.raises(OSError, match="no fourth one"):
        next(found)
    left = one_ahead(pieces())
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert len(ended) == 2
    assert all(name.startswith("kgateway-ahead") for name in ended)


def test_local_paths_are_no_urls(tmp_path: Path) -> None:
    assert location_of(Options({"kgateway.log.folder": str(tmp_path)}, READ)).folder == PurePath(tmp_path)


def test_reading_imports_no_reactor() -> None:
    """
    Reading behind HTTP imports no reactor into Spark's workers.
    """
    import subprocess

    code = (
        "import sys, kgateway.spark.query, kgateway.spark.query; "
        "from kgateway.spark.http.client import Access; print('twisted.internet.reactor' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
