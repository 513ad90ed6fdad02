"""
Files behind HTTP: what is asked of a server, and what is said of one that cannot, will not or does not answer.
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
from kgateway.spark import segments as segments_module
from kgateway.spark.failures import DataLost, TopicGone, Unreadable, WrongOption
from kgateway.spark.logs import Logs
from kgateway.spark.options import READ, Options
from kgateway.spark.query import place_of
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_ahead import one_ahead
from kgateway.spark.remote_files import RemoteFiles
from kgateway.spark.remote_folder import RemoteFolderLogs
from kgateway.spark.remote_http import RemoteError
from kgateway.spark.remote_paths import UrlPath, url_path
from tests.spark.folders import ORDERS, batch, clean, offsets_in, segment
from tests.spark.remote_server import Handler, Served, serving

ALL = list(range(30))
SOON = Access(answer_s=5, patience_s=0.3)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """
    A folder of a partition with offsets 0 to 29 in three segments, of a gateway that was stopped.
    """
    folder = tmp_path / "data of logs" / str(ORDERS)
    for base in (0, 10, 20):
        segment(folder, base, [batch(base + at, 2) for at in range(0, 10, 2)])
    clean(folder.parent)
    return folder


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """
    It, behind HTTP.
    """
    with serving(tmp_path) as server:
        yield server


def logs(server: Served, access: Access = SOON) -> Logs:
    """
    The logs that are served.
    """
    found = RemoteFolderLogs(url_path(f"{server.url}/data%20of%20logs/"), access, committed_only=False)
    server.readers.callback(found.close)
    return found


def files(server: Served) -> RemoteFiles:
    """
    The files that are served.
    """
    found = RemoteFiles(server.url, SOON)
    server.readers.callback(found.close)
    return found


def faulty(server: Served, fault: Callable[[Handler], None], times: int = 1, among: str = ".log") -> None:
    """
    Have requests for such files end in a fault, so many of them.
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
def test_offsets_come_as_from_a_folder_of_this_machine(orders: Path, served: Served, start: int, end: int) -> None:
    """
    Whatever the range is; and the log begins and ends where it does there.
    """
    assert offsets_in(logs(served), start, end) == offsets_in(clean(orders.parent), start, end) == ALL[start:end]
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(0, 30)}
    assert logs(served).partitions() == {"orders": [ORDERS]}


def test_files_are_read_by_ranges(orders: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No more is asked for at once than a window, or a batch that is larger.
    """
    monkeypatch.setattr(segments_module, "WINDOW_BYTES", 200)
    assert offsets_in(logs(served), 0, 30) == ALL
    ranges = [re.findall(r"\d+", each.headers["Range"]) for each in served.told if "Range" in each.headers]
    assert max(int(last) - int(first) + 1 for first, last in ranges if int(last) < 1_000) == 200
    assert len(ranges) > 10


def test_folders_of_many_files(tmp_path: Path, served: Served) -> None:
    """
    All are listed, page by page, whatever their names are.
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
    A file is read whole in parts, and there is nothing behind its end.
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
    Joined like any other, and written as URLs are where somebody reads them.
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
def test_what_breaks_is_asked_for_again(orders: Path, served: Served, how: str) -> None:
    """
    Each offset comes once, as if nothing had been.
    """

    def fault(handler: Handler) -> None:
        BREAKS[how](handler)
        handler.close_connection = True

    faulty(served, fault, times=3)
    assert offsets_in(logs(served, Access(patience_s=20)), 0, 30) == ALL


@pytest.mark.parametrize("how", BREAKS)
def test_it_is_tried_for_a_time_with_an_end(orders: Path, served: Served, how: str) -> None:
    """
    Then it is said what was tried, for how long, and what came of it.
    """

    def fault(handler: Handler) -> None:
        BREAKS[how](handler)
        handler.close_connection = True

    faulty(served, fault, times=1_000)
    said = {
        "503": "HTTP 503 overloaded",
        "429": "HTTP 429",
        "half": "broke off after 4 of",
        "closed": "Remote end",
    }
    words = rf"orders-0 in {served.url}.*\.log cannot be had, tried for \d+ s: .*{said[how]}"
    with pytest.raises(Unreadable, match=words):
        offsets_in(logs(served), 0, 30)


def _wait(released: threading.Event) -> None:
    released.wait(30)


def test_a_server_that_hangs(orders: Path, served: Served) -> None:
    """
    An answer is waited for as long as the option says, and asked for again.
    """
    released = threading.Event()
    faulty(served, lambda _: _wait(released))
    assert offsets_in(logs(served, Access(answer_s=0.2, patience_s=20)), 0, 30) == ALL
    released.set()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """
    It is tried, and said that it refuses.
    """
    with serving(tmp_path) as server:
        gone = logs(server)
    with pytest.raises(Unreadable, match=r"the folder http://127.*/data of logs cannot be read: .*tried for.*refused"):
        gone.partitions()


def test_a_host_that_nobody_knows() -> None:
    """
    It is said at once.
    """
    wrong = RemoteFolderLogs(url_path("http://nowhere.invalid/logs"), Access(), committed_only=False)
    with pytest.raises(Unreadable, match=r"the folder http://nowhere.invalid/logs cannot be read: "):
        wrong.partitions()


def test_a_server_that_ignores_ranges(orders: Path, served: Served) -> None:
    """
    It would send all of a file, so it is refused; where that is not more than was asked for it will do.
    """
    whole = (orders / "00000000000000000000.log").read_bytes()
    faulty(served, lambda handler: handler.answer(200, whole), times=2, among="00000000000000000000.log")
    with pytest.raises(
        Unreadable, match=r"does not answer ranges: .*00000000000000000000.log were wanted, and all came"
    ):
        offsets_in(logs(served), 4, 6)
    faulty(served, lambda handler: handler.answer(200, whole[:5]), times=1)
    assert files(served).read(url_path(f"{served.url}/x.log")) == whole[:5]


@pytest.mark.parametrize("told", ["bytes 1-20/100", "bytes 0-99999999/100000000", "chapters 1-2/3"])
def test_a_server_that_sends_other_ranges(orders: Path, served: Served, told: str) -> None:
    """
    Than those it was asked for, which would be taken for other records.
    """
    faulty(served, lambda handler: handler.answer(206, bytes(20), {"Content-Range": told}), times=1)
    with pytest.raises(Unreadable, match=r"instead of .* from 0 on|does not answer ranges"):
        offsets_in(logs(served), 0, 30)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            lambda handler: handler.answer(200, b"<html>", {"Content-Type": "text/html"}),
            "as a filer does: it sent text/html",
        ),
        (lambda handler: handler.answer(200, b"[]", {"Content-Type": "application/json"}), "it is no page of a folder"),
        (
            lambda handler: handler.answer(200, b"{", {"Content-Type": "application/json"}),
            "is not listed as a filer does",
        ),
        (lambda handler: handler.answer(301, b"", {"Location": "http://x/y"}), "it is at http://x/y, so name that"),
        (lambda handler: handler.answer(400, b"what?"), "HTTP 400 what?"),
        (
            lambda handler: handler.wfile.write(b"\0\0\6\4\0\0\0\0\0\0\5\0\0\x40\0\r\n\r\n"),
            "is no HTTP: is it another port",
        ),
        (lambda handler: handler.answer(403), "HTTP 403: name what it wants by kgateway.http.authorization"),
    ],
)
def test_what_is_no_filer(orders: Path, served: Served, fault: Callable[[Handler], None], said: str) -> None:
    """
    Each is told in its own words, at once.
    """

    def ends(handler: Handler) -> None:
        fault(handler)
        handler.close_connection = True

    faulty(served, ends, among="limit=")
    with pytest.raises(Unreadable, match=re.escape(said)):
        logs(served, Access(patience_s=60)).partitions()


def test_pages_that_begin_anew(tmp_path: Path, served: Served) -> None:
    """
    A server that does not know where to go on would never come to an end.
    """
    page = {"Entries": [{"FullPath": "/a", "Mode": 420, "FileSize": 1, "Mtime": "2026-01-01T00:00:00.123456789Z"}]}
    body = json.dumps(page | {"ShouldDisplayLoadMore": True}).encode()
    faulty(served, lambda handler: handler.answer(200, body, {"Content-Type": "application/json"}), 9, "limit=")
    with pytest.raises(RemoteError, match=r"what follows a begins anew"):
        files(served).names(url_path(served.url))


def test_a_server_without_tls(served: Served) -> None:
    """
    It is said at once that there is none.
    """
    wrong = RemoteFolderLogs(url_path(served.url.replace("http", "https")), Access(), committed_only=False)
    with pytest.raises(Unreadable, match=r"no TLS with https://127.0.0.1:\d+"):
        wrong.partitions()


def test_a_segment_that_goes_while_it_is_read(orders: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Here it is gone at once, which is told as any loss is; so is that all of the partition goes.
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
    with pytest.raises(DataLost, match=r"orders-0 begins with offset 10 now, and offsets \d to 9 were to be read"):
        offsets_in(logs(served), 0, 30)
    for path in orders.iterdir():
        path.unlink()
    orders.rmdir()
    with pytest.raises(TopicGone, match=rf"orders-0 is not in {served.url}/data of logs any more"):
        offsets_in(logs(served), 10, 30)


def test_damage_is_told_with_its_place(orders: Path, served: Served) -> None:
    """
    The file by its URL, and the byte.
    """
    path = orders / "00000000000000000010.log"
    path.write_bytes(path.read_bytes()[:-1])
    data = bytearray(path.read_bytes())
    size = len(batch(10, 2))
    data[size + 16] = 1
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=rf"{served.url}/data of logs/orders-0/{path.name} is damaged at byte {size}:"):
        offsets_in(logs(served), 0, 30)


def test_headers_that_servers_want(orders: Path, served: Served, tmp_path: Path) -> None:
    """
    One that is given goes with each request; a security.toml signs them, for as long as it says.
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
    with pytest.raises(Unreadable, match=r"HTTP 401: it does not take what is signed with `key` under \[jwt.filer_sig"):
        logs(served, Access(security_file=str(file))).partitions()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kgateway.log.folder": "http://"}, "has to be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "http://host:port/x"}, "has to be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "http://u:p@host/x"}, "has to be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "http://host/x?y"}, "has to be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "s3://bucket/x"}, "has to be a folder of this machine, or http://HOST:PORT/PATH"),
        ({"kgateway.log.folder": "/x", "kgateway.seaweed.security": "/none"}, "/none cannot be read"),
    ],
)
def test_wrong_options(given: dict[str, str], said: str) -> None:
    """
    URLs that are none are refused before anything is asked.
    """
    with pytest.raises(WrongOption, match=re.escape(said)):
        place_of(Options(given, READ))


def test_options_name_a_folder_behind_http(orders: Path, served: Served) -> None:
    """
    In place of one of this machine; how long to wait is said by the options that say it of servers.
    """
    given = {"kgateway.log.folder": f"{served.url}/data%20of%20logs", "kafkaConsumer.pollTimeoutMs": "700"}
    place = place_of(Options(given | {"kafka.request.timeout.ms": "200"}, READ))
    assert place.access == Access(answer_s=0.2, patience_s=0.7)
    with closing(place.open(planning=False)) as found:
        assert offsets_in(found, 0, 30) == ALL


def test_one_piece_ahead() -> None:
    """
    While a piece is looked at the next one is made, and no other; what fails fails in its turn, and what is not wanted
    any more is closed.
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


def test_paths_of_this_machine_stay(tmp_path: Path) -> None:
    """
    They are no URLs.
    """
    assert place_of(Options({"kgateway.log.folder": str(tmp_path)}, READ)).folder == PurePath(tmp_path)


def test_nothing_of_a_reactor_is_there() -> None:
    """
    What reads behind HTTP brings no reactor into Spark's workers.
    """
    import subprocess

    code = (
        "import sys, kgateway.spark.place, kgateway.spark.query; "
        "from kgateway.spark.remote_access import Access; print('twisted.internet.reactor' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
