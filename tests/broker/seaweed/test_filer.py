"""
Entries of a real filer.
"""

import pytest
from twisted.internet.defer import CancelledError, gatherResults

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer, is_inline
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import wait


def _content(filer: Filer, path: str) -> bytes:
    entry = wait(filer.entry(path))
    assert entry
    return entry.content


def _names(entries: list[Entry]) -> list[str]:
    return [entry.name for entry in entries]


def test_what_is_not_there_is_nothing(filer: Filer, folder: str) -> None:
    """
    A missing entry is no failure.
    """
    assert wait(filer.entry(f"{folder}/none")) is None
    assert wait(filer.entries(folder)) == []


def test_a_file_has_the_bytes_that_were_written_last(filer: Filer, folder: str) -> None:
    """
    HTTP, which needs the size, returns the same bytes as gRPC.
    """
    path = f"{folder}/file"
    for content in (b"first", b"second and longer", b""):
        wait(filer.write(path, content))
        assert _content(filer, path) == content
        assert wait(filer.files.read(path, 0, 100)) == content


def test_the_bytes_of_a_small_file_are_found_wherever_they_are(filer: Filer, folder: str) -> None:
    """
    They are in its entry, or in a volume if the file was written over HTTP.
    """
    wait(filer.write(f"{folder}/inside", b"in the entry"))
    wait(filer.files.put(f"{folder}/apart", b"in a volume"))
    wait(filer.files.put(f"{folder}/empty", b""))
    entries = {entry.name: is_inline(entry) for entry in wait(filer.entries(folder))}
    assert entries == {"inside": True, "apart": False, "empty": True}
    found = [wait(filer.content(f"{folder}/{name}")) for name in ("inside", "apart", "empty", "none")]
    assert found == [b"in the entry", b"in a volume", b"", None]


def test_only_one_of_many_creates_what_is_absent(filer: Filer, folder: str) -> None:
    """
    The others learn that it is there.
    """
    path = f"{folder}/one"
    entries = [filer.small_file(b"%d" % number) for number in range(20)]
    won = wait(gatherResults([filer.create(path, entry, only_if_absent=True) for entry in entries]))
    assert won.count(True) == 1
    assert _content(filer, path) == b"%d" % won.index(True)


def test_what_is_there_can_be_replaced(filer: Filer, folder: str) -> None:
    """
    A write that does not demand absence replaces the entry.
    """
    path = f"{folder}/one"
    for content in (b"first", b"second"):
        assert wait(filer.create(path, filer.small_file(content), only_if_absent=False))
    assert _content(filer, path) == b"second"


def test_a_filer_decides_by_itself_what_is_created_there(filer: Filer, folder: str) -> None:
    """
    One of many creates what is absent; the others learn that it is there.
    """
    path = f"{folder}/one"
    entries = [filer.small_file(b"%d" % number) for number in range(20)]
    won = wait(gatherResults([filer.create_here(path, entry) for entry in entries]))
    assert won.count(True) == 1
    assert _content(filer, path) == b"%d" % won.index(True)


def test_a_filer_decides_by_itself_what_is_replaced_there(filer: Filer, folder: str) -> None:
    """
    If two clients have seen the same version, one of them replaces it.
    """
    path = f"{folder}/counter"
    assert wait(filer.create_here(path, filer.versioned_file(b"one")))
    seen = wait(filer.entry(path))
    assert seen
    for content, expected in ((b"two", True), (b"other two", False)):
        assert wait(filer.replace_here(path, filer.versioned_file(content), seen)) is expected
    assert _content(filer, path) == b"two"
    wait(filer.delete(path))
    assert not wait(filer.replace_here(path, filer.versioned_file(b"three"), seen))


def test_an_update_keeps_the_rest_of_the_entry(filer: Filer, folder: str) -> None:
    """
    Attributes that the update does not name are kept.
    """
    path = f"{folder}/file"
    wait(filer.create(path, filer.small_file(b"one", {"kept": b"1"}), only_if_absent=True))
    entry = wait(filer.entry(path))
    assert entry
    entry.extended["more"] = b"2"
    wait(filer.update(path, entry))
    found = wait(filer.entry(path))
    assert found
    assert dict(found.extended) == {"kept": b"1", "more": b"2"}
    assert found.content == b"one"


def test_what_a_filer_refuses_is_told_with_its_path(filer: Filer, folder: str) -> None:
    """
    The error has the filer's words.
    """
    with pytest.raises(FilerRefused, match=f"{folder}/none: .*no entry is found"):
        wait(filer.update(f"{folder}/none", filer.small_file(b"")))
    wait(filer.write(f"{folder}/sub/file", b""))
    with pytest.raises(FilerRefused, match="existing entry is a directory"):
        wait(filer.write(f"{folder}/sub", b""))
    with pytest.raises(FilerRefused, match="name too long"):
        wait(filer.create(f"{folder}/{'x' * 300}", filer.small_file(b""), only_if_absent=True))
    with pytest.raises(FilerRefused, match="non-empty folder"):
        wait(filer.delete(f"{folder}/sub"))


def test_a_folder_is_listed_in_pages(filer: Filer, folder: str) -> None:
    """
    Names are sorted; a prefix selects some.
    """
    for name in ("b2", "a", "b1", "c", "b3"):
        wait(filer.write(f"{folder}/{name}", b"x"))
    assert _names(wait(filer.entries(folder, limit=2))) == ["a", "b1"]
    assert _names(wait(filer.entries(folder, after="b1", limit=2))) == ["b2", "b3"]
    assert _names(wait(filer.entries(folder, prefix="b", after="b1"))) == ["b2", "b3"]
    assert _names(wait(filer.all_entries(folder, "b"))) == ["b1", "b2", "b3"]


def test_all_of_a_large_folder_is_listed(filer: Filer, folder: str) -> None:
    """
    It has more entries than a page.
    """
    names = [f"{number:05d}" for number in range(2_000)]
    for start in range(0, len(names), 100):
        wait(gatherResults([filer.write(f"{folder}/{name}", b"") for name in names[start : start + 100]]))
    assert _names(wait(filer.all_entries(folder))) == names


def test_what_is_deleted_is_gone(filer: Filer, folder: str) -> None:
    """
    A folder is deleted with its content, and a missing entry is no failure.
    """
    wait(filer.write(f"{folder}/sub/file", b"x"))
    for _ in range(2):
        wait(filer.delete(f"{folder}/sub", recursive=True))
    assert wait(filer.entries(folder)) == []
    wait(filer.delete(f"{folder}/none"))


def test_what_is_renamed_takes_the_place_of_another(filer: Filer, folder: str) -> None:
    """
    It may move to any folder. A missing entry is refused.
    """
    for name in ("one", "other"):
        wait(filer.create(f"{folder}/{name}", filer.small_file(name.encode()), only_if_absent=True))
    wait(filer.rename(f"{folder}/one", f"{folder}/other"))
    wait(filer.rename(f"{folder}/other", f"{folder}/sub/new"))
    assert _names(wait(filer.entries(folder))) == ["sub"]
    entry = wait(filer.entry(f"{folder}/sub/new"))
    assert entry
    assert entry.content == b"one"
    with pytest.raises(FilerRefused, match=f"{folder}/one"):
        wait(filer.rename(f"{folder}/one", f"{folder}/two"))


def test_what_was_done_has_an_earlier_time(filer: Filer, folder: str) -> None:
    """
    The times are those of the filer's clock.
    """
    first = wait(filer.now_ns())
    assert first < wait(filer.now_ns())


def test_who_reads_waits_for_a_filer_that_is_gone_for_a_while(cluster: DevCluster, filer: Filer, folder: str) -> None:
    """
    Writes that can be repeated wait, too.
    """

    async def written() -> bytes:
        cluster.server.kill()
        waiting = filer.write(f"{folder}/file", b"written"), filer.entries(folder)
        cluster.start_server()
        for each in waiting:
            await each
        entry = await filer.entry(f"{folder}/file")
        assert entry
        return entry.content

    assert done(written(), 60) == b"written"


def test_what_can_be_done_once_is_tried_once(cluster: DevCluster, filer: Filer, folder: str) -> None:
    """
    The failure names the path, and does not show whether the call was done.
    """
    cluster.server.kill()
    with pytest.raises(RpcError, match=f"{folder}/file: ") as told:
        wait(filer.create(f"{folder}/file", filer.small_file(b""), only_if_absent=True), 5)
    assert told.value.status is Status.UNAVAILABLE


def test_a_filer_that_hangs_has_a_time_to_answer(
    cluster: DevCluster, filer: Filer, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The call fails after that time.
    """
    monkeypatch.setattr("kgateway.broker.seaweed.filer.filer._ANSWER_S", 0.2)
    cluster.server.pause()
    with pytest.raises(RpcError) as told:
        wait(filer.update(f"{folder}/file", filer.small_file(b"")), 15)
    assert told.value.status is Status.DEADLINE_EXCEEDED


def test_a_listing_that_nobody_waits_for_ends(filer: Filer, folder: str) -> None:
    """
    A listing is cancelled like any other call.
    """
    listing = filer.entries(folder)
    listing.cancel()
    with pytest.raises(CancelledError):
        wait(listing)
