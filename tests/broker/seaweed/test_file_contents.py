"""
File contents are read over HTTP from a real filer, and written to its volume servers.
"""

import os

import pytest
from twisted.internet.defer import gatherResults

from kgateway.broker.seaweed.calls.http_client import HttpClient
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.security.cluster_access import Role, Security
from kgateway.cluster.view import Address
from tests.broker.seaweed.real_reactor import pause, reactor, wait

_LARGE = 9 << 20  # a filer cuts it into three


def test_any_range_of_a_file_can_be_read(filer: Filer, folder: str) -> None:
    """
    A range may span chunks, and ends with the file.
    """
    path, data = f"{folder}/a file, large: ä?#%", os.urandom(_LARGE)
    wait(filer.files.put(path, data))
    for start, stop in ((0, 1), (0, _LARGE), (4 << 20, (4 << 20) + 1), ((4 << 20) - 5, 8 << 20), (_LARGE - 1, _LARGE)):
        assert wait(filer.files.read(path, start, stop)) == data[start:stop]
    assert wait(filer.files.read(path, _LARGE - 3, _LARGE + 100)) == data[-3:]


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 3), (3, 2), (5, 6), (100, 200)])
def test_where_there_is_nothing_nothing_is_read(filer: Filer, folder: str, start: int, stop: int) -> None:
    """
    A range after the end of a file, or an empty one, has no bytes.
    """
    wait(filer.files.put(f"{folder}/file", b"12345"))
    assert wait(filer.files.read(f"{folder}/file", start, stop)) == b""


def test_an_empty_file_can_be_read(filer: Filer, folder: str) -> None:
    """
    HTTP has no range for it.
    """
    wait(filer.files.put(f"{folder}/empty", b""))
    assert wait(filer.files.read(f"{folder}/empty", 0, 10)) == b""


def test_a_file_that_is_not_there_is_refused(filer: Filer, folder: str) -> None:
    """
    The error names its path.
    """
    with pytest.raises(FilerRefused, match=f"{folder}/none: HTTP 404"):
        wait(filer.files.read(f"{folder}/none", 0, 10))


def test_many_reads_go_on_at_once(filer: Filer, folder: str) -> None:
    """
    There are more reads than connections.
    """
    data = os.urandom(200_000)
    wait(filer.files.put(f"{folder}/file", data))
    ranges = [(start, start + 1_000) for start in range(0, 100_000, 1_000)]
    found = wait(gatherResults([filer.files.read(f"{folder}/file", *each) for each in ranges]))
    assert found == [data[start:stop] for start, stop in ranges]


def test_a_connection_that_was_kept_and_is_gone_is_made_again(cluster: DevCluster, filer: Filer, folder: str) -> None:
    """
    Neither readers nor writers notice.
    """
    wait(filer.files.put(f"{folder}/file", b"12345"))
    cluster.server.kill()
    cluster.start_server()
    assert wait(filer.files.read(f"{folder}/file", 0, 5)) == b"12345"
    cluster.server.kill()
    cluster.start_server()
    wait(filer.files.put(f"{folder}/file", b"more"))
    assert wait(filer.files.read(f"{folder}/file", 0, 5)) == b"more"


def test_who_does_not_answer_is_given_up(cluster: DevCluster, filer: Filer, folder: str) -> None:
    """
    The call ends in time, and frees its connection slot.
    """
    http = HttpClient(reactor, Role.FILER, Security())
    cluster.server.pause()
    waiting = [
        http.ask("GET", filer.address.http, f"{folder}/file", timeout_s=0.2).addErrback(lambda failure: failure.value)
        for _ in range(20)
    ]
    errors = wait(gatherResults(waiting))
    assert {error.status for error in errors if isinstance(error, RpcError)} == {Status.DEADLINE_EXCEEDED}
    cluster.server.resume()
    assert wait(http.ask("GET", filer.address.http, "/", timeout_s=5)).status == 200
    wait(http.close())


def test_more_than_was_asked_for_is_not_taken(filer: Filer, folder: str) -> None:
    """
    A longer answer is refused, whichever server it is from.
    """
    http = HttpClient(reactor, Role.FILER, Security())
    path = f"{folder}/file"
    wait(filer.files.put(path, os.urandom(_LARGE)))
    with pytest.raises(RpcError, match="longer than 100000 bytes"):
        wait(http.ask("GET", filer.address.http, path, answer_bytes_max=100_000, timeout_s=5))
    pause(0.1)
    wait(http.close())


def test_nobody_there_is_told_with_the_address() -> None:
    """
    The failure is one that may pass.
    """
    http = HttpClient(reactor, Role.FILER, Security())
    with pytest.raises(RpcError, match=r"GET 127\.0\.0\.1:1/file: .*refused") as told:
        wait(http.ask("GET", Address("127.0.0.1", 1), "/file", timeout_s=5))
    assert told.value.status is Status.UNAVAILABLE
    wait(http.close())


def test_what_is_put_onto_a_volume_server_can_be_given_to_a_file(filer: Filer, folder: str) -> None:
    """
    Its entry says where the bytes are.
    """
    path, data = f"{folder}/file", os.urandom(1 << 20)
    uploaded = wait(filer.volumes.upload(path, data))
    entry = filer.small_file(b"")
    entry.chunks.append(uploaded.chunk)
    entry.attributes.file_size = len(data)
    assert wait(filer.create(path, entry, only_if_absent=True))
    assert wait(filer.files.read(path, 0, 2 << 20)) == data


def test_what_no_entry_knows_of_can_be_taken_away(filer: Filer, folder: str) -> None:
    """
    The bytes are deleted then.
    """
    uploaded = wait(filer.volumes.upload(f"{folder}/file", b"12345"))
    wait(filer.volumes.remove(uploaded))
    with pytest.raises(FilerRefused, match=f"{uploaded.chunk.file_id}: HTTP 404"):
        wait(filer.volumes.remove(uploaded))
