"""
The folder of a log: how it is created, what the last process left, and when it is refused.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EINVAL, EIO, ENOLCK, ENOSPC, EROFS
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from kgateway.broker.log.data_folder.folder_error import ANOTHER, FolderError
from kgateway.broker.log.data_folder.folder_lock import FolderLock
from kgateway.broker.log.data_folder.session import FolderSession, this_boot
from kgateway.broker.log.data_folder.start_file import LastEnd
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.wire.uuids import Uuid

OPENING = """
import sys
from pathlib import Path
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.data_folder.folder_error import FolderError
try:
    folder = FolderSession.open(Path(sys.argv[1]), LocalDisk(), 1)
except FolderError as error:
    print(error, flush=True)
else:
    print("opened", flush=True)
sys.stdin.read()
"""
LOCKING_AS_KAFKA = """
import fcntl, sys
with open(sys.argv[1] + "/.lock", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""
META_LINES = {
    "kgateway.format": "1",
    "version": "1",
    "cluster.id": "MkU3OEVBNTcwNTJENDM2Qg",
    "directory.id": "2aVnXVTvT1q0kVBXWFl3bA",
    "node.id": "1",
}


class RecordingDisk(LocalDisk):
    """
    Notes what changes it, and fails where it is told to.
    """

    def __init__(self, **failing: int) -> None:
        self.done: list[tuple[str, Path]] = []
        self._failing = failing

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        self._note("write and sync" if sync else "write", path)
        super().write(path, data, sync=sync)

    def remove(self, path: Path) -> None:
        self._note("remove", path)
        super().remove(path)

    def make_folder(self, folder: Path) -> None:
        self._note("make_folder", folder)
        super().make_folder(folder)

    def sync_folder(self, folder: Path) -> None:
        self._note("sync_folder", folder)
        super().sync_folder(folder)

    def _note(self, name: str, path: Path) -> None:
        self.done.append((name, path))
        if name in self._failing:
            code = self._failing[name]
            raise OSError(code, os.strerror(code), str(path))


def start(path: Path, node_id: int = 1, *, disk: LocalDisk | None = None, boot: str | None = "monday") -> FolderSession:
    """
    Open the folder with a process that then dies.
    """
    folder = FolderSession.open(path, disk or LocalDisk(), node_id, boot_id=lambda: boot)
    folder.close()
    return folder


def stop_cleanly(path: Path, boot: str | None = "monday") -> None:
    start(path, boot=boot).mark_clean()


def refused(path: Path, node_id: int = 1, *, disk: LocalDisk | None = None) -> str:
    with pytest.raises(FolderError) as error:
        start(path, node_id, disk=disk)
    return str(error.value)


def write_meta(path: Path, **changes: str | None) -> None:
    """
    A meta.properties with other values, or without some.
    """
    lines = META_LINES | {key.replace("_", "."): value for key, value in changes.items()}
    text = "".join(f"{key}={value}\n" for key, value in lines.items() if value is not None)
    (path / "meta.properties").write_text(text)


@contextmanager
def other_process(program: str, path: Path) -> Iterator[tuple[int, str]]:
    """
    Another process that runs this, and its first line; killed afterwards.
    """
    with Popen([sys.executable, "-c", program, str(path)], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.kill()


def test_missing_folder_is_created(tmp_path: Path) -> None:
    """
    Missing parents are created too, and the ids are kept from then on.
    """
    path = tmp_path / "far" / "away"
    first = start(path)
    assert (first.node_id, first.start_number, first.was_clean, first.same_boot) == (1, 1, False, False)
    assert str(Uuid.parse(first.cluster_id)) == first.cluster_id
    again = start(path)
    assert (again.cluster_id, again.directory_id, again.start_number) == (first.cluster_id, first.directory_id, 2)


def test_meta_is_as_kafka_has_it(tmp_path: Path) -> None:
    """
    meta.properties has Kafka's lines in Kafka's first version, and one of ours.
    """
    folder = start(tmp_path, 7)
    assert (tmp_path / "meta.properties").read_text().splitlines() == [
        "kgateway.format=1",
        "version=1",
        f"cluster.id={folder.cluster_id}",
        f"directory.id={folder.directory_id}",
        "node.id=7",
    ]


def test_meta_may_be_written_by_hand(tmp_path: Path) -> None:
    """
    Comments, empty lines and blanks are no matter, as in all such files of Java.
    """
    lines = [f"{key} = {value}" for key, value in META_LINES.items()]
    (tmp_path / "meta.properties").write_text("\n".join(["#", "#Thu Jan 01 00:00:00 UTC 1970", "! #=1", "", *lines]))
    folder = start(tmp_path)
    assert (folder.cluster_id, str(folder.directory_id)) == (META_LINES["cluster.id"], META_LINES["directory.id"])


@pytest.mark.parametrize(
    "left",
    [[], [".lock"], ["lost+found/"], [".lock", "meta.properties.12-34-0.tmp"]],
    ids=["nothing", "a lock", "lost and found", "half a file"],
)
def test_a_first_start_may_be_interrupted(tmp_path: Path, left: list[str]) -> None:
    """
    What a crash of the very first start can leave, and what a fresh file system has, is as good as empty.
    """
    for name in left:
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_bytes(b"4711\n")
    assert start(tmp_path).start_number == 1
    assert start(tmp_path).start_number == 2


def test_a_first_start_may_be_interrupted_late(tmp_path: Path) -> None:
    """
    A folder that has its ids and no start yet keeps them.
    """
    write_meta(tmp_path)
    folder = start(tmp_path)
    assert (folder.cluster_id, folder.start_number) == (META_LINES["cluster.id"], 1)


def test_unfinished_files_are_removed(tmp_path: Path) -> None:
    """
    A file that was not renamed into place when the process ended is removed at the next start.
    """
    start(tmp_path)
    half = tmp_path / "kgateway.producer-ids.12-34-0.tmp"
    half.write_bytes(b"{")
    start(tmp_path)
    assert not half.exists()


def test_parents_of_a_new_folder_are_synced(tmp_path: Path) -> None:
    """
    Parent folders are synced before anything is written to the new folder.
    """
    disk, path = RecordingDisk(), tmp_path / "far" / "away"
    start(path, disk=disk)
    before = disk.done[: disk.done.index(("write and sync", path / "meta.properties"))]
    assert {("sync_folder", tmp_path), ("sync_folder", tmp_path / "far")} <= set(before)


@pytest.mark.parametrize(("code", "matters"), [(EINVAL, False), (EACCES, False), (EROFS, False), (EIO, True)])
def test_some_folders_cannot_be_synced(tmp_path: Path, code: int, matters: bool) -> None:
    """
    Folders around it in which no name can have been made need no sync; one that fails is another matter.
    """

    class Disk(LocalDisk):
        def sync_folder(self, folder: Path) -> None:
            if folder != path:
                raise OSError(code, os.strerror(code), str(folder))

    path = tmp_path / "data"
    if matters:
        assert "Input/output error" in refused(path, disk=Disk())
    else:
        assert start(path, disk=Disk()).start_number == 1


def test_start_number_is_synced(tmp_path: Path) -> None:
    """
    It is synced before the folder is returned.
    """
    disk = RecordingDisk()
    start(tmp_path, disk=disk)
    assert ("write and sync", tmp_path / "kgateway.start") in disk.done
    assert json.loads((tmp_path / "kgateway.start").read_bytes()) == {"start_number": 1, "boot_id": "monday"}


def test_clean_marker_counts_for_one_start(tmp_path: Path) -> None:
    """
    It tells the next start that everything was synced, and no later one.
    """
    stop_cleanly(tmp_path)
    assert start(tmp_path).was_clean
    assert not start(tmp_path).was_clean


def test_the_marker_is_as_kafka_has_it(tmp_path: Path) -> None:
    """
    The marker is synced, has Kafka's version, and the number of the start where Kafka has the epoch of the broker.
    """
    start(tmp_path)
    disk = RecordingDisk()
    start(tmp_path, disk=disk).mark_clean()
    assert disk.done[-2:] == [("write and sync", tmp_path / ".kafka_cleanshutdown"), ("sync_folder", tmp_path)]
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_bytes()) == {"version": 0, "brokerEpoch": 2}


def test_removal_of_the_marker_is_synced(tmp_path: Path) -> None:
    """
    It is synced before the folder is returned.
    """
    stop_cleanly(tmp_path)
    disk = RecordingDisk()
    start(tmp_path, disk=disk)
    assert disk.done[-2:] == [("remove", tmp_path / ".kafka_cleanshutdown"), ("sync_folder", tmp_path)]


@pytest.mark.parametrize("was_clean", [True, False])
def test_a_folder_is_given_back_as_it_was_found(tmp_path: Path, was_clean: bool) -> None:
    """
    A start that has come to nothing says of what it has left as it is what was said before.
    """
    start(tmp_path)
    if was_clean:
        stop_cleanly(tmp_path)
    found = FolderSession.open(tmp_path, LocalDisk(), 1)
    assert found.was_clean is was_clean
    found.give_back()
    again = start(tmp_path)
    assert (again.was_clean, again.start_number) == (was_clean, found.start_number + 1)


def test_a_new_folder_is_given_back_by_removing_it(tmp_path: Path) -> None:
    """
    It exists as long as its start does; one that was there before, though empty, is kept.
    """
    FolderSession.open(tmp_path / "new", LocalDisk(), 1).give_back()
    (tmp_path / "empty").mkdir()
    FolderSession.open(tmp_path / "empty", LocalDisk(), 1).give_back()
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    assert start(tmp_path / "new").start_number == 1


def test_a_new_folder_is_given_back_with_the_files_of_others(tmp_path: Path) -> None:
    """
    Somebody has copied a file into it meanwhile.
    """
    folder = FolderSession.open(tmp_path / "new", LocalDisk(), 1)
    (folder.path / "notes.txt").write_text("mine")
    (folder.path / "meta.properties.1.tmp").write_text("half")
    folder.give_back()
    assert [path.name for path in folder.path.iterdir()] == ["notes.txt"]


def test_a_folder_is_given_back_though_the_disk_fails(tmp_path: Path) -> None:
    """
    It is told why the start failed, and others can have the folder.
    """
    stop_cleanly(tmp_path)
    disk = RecordingDisk()
    found = FolderSession.open(tmp_path, disk, 1)
    disk._failing["write and sync"] = EIO
    found.give_back()
    assert not start(tmp_path).was_clean


@pytest.mark.parametrize(
    ("boot", "last_end"), [("monday", LastEnd.PROCESS_CRASHED), ("tuesday", LastEnd.MACHINE_CRASHED)]
)
def test_how_the_last_process_ended(tmp_path: Path, boot: str, last_end: LastEnd) -> None:
    """
    The last process stopped cleanly, crashed by itself, or crashed with its machine.
    """
    assert start(tmp_path).last_end is LastEnd.MACHINE_CRASHED
    assert start(tmp_path, boot=boot).last_end is last_end
    stop_cleanly(tmp_path)
    assert start(tmp_path, boot=boot).last_end is LastEnd.CLEAN_STOP


def test_failed_start_keeps_the_marker(tmp_path: Path) -> None:
    """
    The marker is removed last: a start that could not even be counted has written nothing.
    """
    stop_cleanly(tmp_path)
    refused(tmp_path, disk=RecordingDisk(**{"write and sync": EIO}))
    assert start(tmp_path).was_clean


@pytest.mark.parametrize(
    ("boot", "same"), [("monday", True), ("tuesday", False), (None, False)], ids=["same", "other", "unknown"]
)
def test_a_boot_is_known_again(tmp_path: Path, boot: str | None, same: bool) -> None:
    """
    Where the machine has run since the last start, what was not synced is there too.
    """
    start(tmp_path)
    start(tmp_path)
    assert start(tmp_path, boot=boot).same_boot is same


def test_unknown_boots_are_never_the_same(tmp_path: Path) -> None:
    """
    A machine that does not tell its boots may have been switched off between any two starts.
    """
    start(tmp_path, boot=None)
    assert not start(tmp_path, boot=None).same_boot


def test_crash_before_the_check_does_not_clear_the_last_one(tmp_path: Path) -> None:
    """
    A process that dies before it has checked the files of another boot does not make them trustworthy.
    """
    start(tmp_path)
    start(tmp_path, boot="tuesday")
    assert not start(tmp_path, boot="tuesday").same_boot


def test_checked_folder_survives_a_process_crash(tmp_path: Path) -> None:
    """
    Once all files of another boot are checked, a crash of the process does them no harm. That is synced: a file that
    a crash leaves empty would be taken for damaged.
    """
    start(tmp_path)
    disk = RecordingDisk()
    start(tmp_path, boot="tuesday", disk=disk).record_boot()
    assert disk.done[-2:] == [("write and sync", tmp_path / "kgateway.start"), ("sync_folder", tmp_path)]
    folder = start(tmp_path, boot="tuesday")
    assert (folder.same_boot, folder.start_number) == (True, 3)


def test_cleanly_stopped_folder_needs_no_check(tmp_path: Path) -> None:
    """
    It needs none in any boot.
    """
    stop_cleanly(tmp_path)
    start(tmp_path, boot="tuesday")
    assert start(tmp_path, boot="tuesday").same_boot


def test_boot_id_is_that_of_linux() -> None:
    """
    Other systems have none.
    """
    assert this_boot() == this_boot()
    assert (this_boot() is not None) == Path("/proc/sys/kernel/random/boot_id").exists()


def test_a_file_is_refused(tmp_path: Path) -> None:
    """
    A path that is a file, or leads through one, is refused.
    """
    file = tmp_path / "data"
    file.write_bytes(b"")
    assert refused(file) == (
        f"{file} cannot be made: File exists; it is a file, not a folder; name an empty folder or a new one"
    )
    assert refused(file / "below") == (
        f"{file / 'below'} cannot be made: Not a directory; "
        "a file is where a folder should be; name an empty folder or a new one"
    )


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """
    It is said which folder could not be made, and what to do.
    """
    path = tmp_path / "data"
    assert refused(path, disk=RecordingDisk(make_folder=EACCES)) == (
        f"{path} cannot be made: Permission denied; let the user who runs kgateway read and write there"
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (EROFS, "Read-only file system at {}; mount its file system read-write, or name another folder"),
        (EACCES, "Permission denied at {}; let the user who runs kgateway read and write there"),
        (ENOSPC, "No space left on device at {}; free some space on its disk"),
    ],
    ids=["read-only", "rights", "full"],
)
def test_a_folder_that_cannot_be_locked_is_refused(tmp_path: Path, code: int, reason: str) -> None:
    """
    The first thing that is written is the lock: what the system has against it is said, and what to do.
    """

    def lock(path: Path) -> FolderLock:
        raise OSError(code, os.strerror(code), str(path / ".lock"))

    with pytest.raises(FolderError) as error:
        FolderSession.open(tmp_path, LocalDisk(), 1, lock=lock)
    assert str(error.value) == f"{tmp_path} cannot be opened: " + reason.format(tmp_path / ".lock")


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    That a lock cannot be had at all is not taken for its being held.
    """

    def lockf(descriptor: int, command: int) -> None:
        raise OSError(ENOLCK, os.strerror(ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    assert refused(tmp_path) == (
        f"{tmp_path} cannot be opened: No locks available; check its disk, or name another folder"
    )


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["a.txt", "b.txt", "c.tmp", "d.txt"], "a.txt, b.txt, c.tmp and 1 more"),
        (["meta.properties.bak"], "meta.properties.bak"),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, names: list[str], shown: str) -> None:
    """
    A folder that has files and is not a gateway's is refused by their names, and stays as it is.
    """
    for name in names:
        (tmp_path / name).write_bytes(b"")
    assert refused(tmp_path) == (
        f"{tmp_path} holds files that are not kgateway's: {shown}; name an empty folder or a new one"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize("sign", ["meta.properties", "__cluster_metadata-0"])
def test_kafka_s_folder_is_refused(tmp_path: Path, sign: str) -> None:
    """
    A folder of Kafka itself is refused by that name, and stays as it is.
    """
    if sign == "meta.properties":
        write_meta(tmp_path, kgateway_format=None)
    else:
        (tmp_path / sign).mkdir()
    reason = f"{tmp_path} is the data directory of an Apache Kafka broker; name an empty folder or a new one"
    assert refused(tmp_path) == reason
    assert [path.name for path in tmp_path.iterdir()] == [sign]


def test_a_topic_may_be_named_like_kafka_s_own(tmp_path: Path) -> None:
    """
    A folder that is a gateway's may have any topic.
    """
    start(tmp_path)
    (tmp_path / "__cluster_metadata-0").mkdir()
    assert start(tmp_path).start_number == 2


def test_a_newer_form_is_refused(tmp_path: Path) -> None:
    """
    What a newer kgateway wrote is left to it, whatever else it may mean.
    """
    write_meta(tmp_path, kgateway_format="2", version=None, node_id="9")
    assert refused(tmp_path) == (
        f"{tmp_path} was written by a newer kgateway; format 2, this one reads 1: start the newer one"
    )


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({"kgateway_format": "one"}, "does not have the line kgateway.format=1"),
        ({"kgateway_format": "9" * 5000}, "does not have the line kgateway.format=1"),
        ({"version": "0"}, "does not have the line version=1"),
        ({"version": None}, "does not have the line version=1"),
        ({"cluster_id": None}, "has no line cluster.id"),
        ({"cluster_id": "short"}, "has an invalid value: not a Kafka UUID"),
        ({"directory_id": None}, "has no line directory.id"),
        ({"directory_id": ""}, "has an invalid value: not a Kafka UUID"),
        ({"node_id": None}, "has no line node.id"),
        ({"node_id": "first"}, "has an invalid value: invalid literal"),
    ],
)
def test_a_damaged_meta_is_refused(tmp_path: Path, changes: dict[str, str | None], how: str) -> None:
    """
    It is said what meta.properties lacks, and which lines it needs.
    """
    write_meta(tmp_path, **changes)
    message = refused(tmp_path)
    assert message.startswith(f"{tmp_path / 'meta.properties'} {how}")
    assert message.endswith(
        "; restore it from a copy, or write these lines into it: "
        "kgateway.format=1, version=1, cluster.id, directory.id and node.id"
    )


def test_a_meta_that_was_emptied_is_damaged(tmp_path: Path) -> None:
    """
    A meta.properties without a line that tells whose it is was not Kafka's either.
    """
    start(tmp_path)
    (tmp_path / "meta.properties").write_bytes(b"\0" * 100)
    assert refused(tmp_path).startswith(f"{tmp_path / 'meta.properties'} has no line kgateway.format; ")


def test_a_meta_that_was_removed_is_missed(tmp_path: Path) -> None:
    """
    A folder that was opened before is not called somebody else's.
    """
    start(tmp_path)
    (tmp_path / "meta.properties").unlink()
    assert refused(tmp_path).startswith(f"{tmp_path / 'meta.properties'} is missing; ")


STARTS = ["x", '"7"', "0", "true", "1.5", "2147483648", "9" * 5000, "[" * 99999]


@pytest.mark.parametrize(
    "text",
    ["", "3", "[]", "{}", '{"start_number"', "\xff", *(f'{{"start_number": {number}}}' for number in STARTS)],
    ids=lambda text: text[:40],
)
def test_a_damaged_start_is_refused(tmp_path: Path, text: str) -> None:
    """
    Starts are not counted from the beginning where the number is lost: leader epochs must not come again.
    """
    start(tmp_path)
    (tmp_path / "kgateway.start").write_text(text, "latin-1")
    message = refused(tmp_path)
    assert message.startswith(f"{tmp_path / 'kgateway.start'} ")
    assert message.endswith(
        'write {"start_number": N} into it, with an N above every leader epoch that clients may have seen'
    )


def test_a_start_that_was_removed_is_missed(tmp_path: Path) -> None:
    """
    Nor where the file is missing and others are there.
    """
    start(tmp_path)
    (tmp_path / "kgateway.start").unlink()
    (tmp_path / "orders-0").mkdir()
    assert refused(tmp_path).startswith(f"{tmp_path / 'kgateway.start'} is missing; ")


def test_a_start_may_be_written_by_hand(tmp_path: Path) -> None:
    """
    What the refusal tells to write is taken.
    """
    start(tmp_path)
    (tmp_path / "kgateway.start").write_text('{"start_number": 1000}')
    folder = start(tmp_path)
    assert (folder.start_number, folder.same_boot) == (1001, False)


def test_the_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    """
    It is said whose it is, who we are, and which option sets that.
    """
    start(tmp_path, 2)
    assert refused(tmp_path, 3) == (
        f"{tmp_path} belongs to node 2, but this gateway is node 3: start it with --node-id=2, or {ANOTHER}"
    )


def test_a_folder_has_one_process(tmp_path: Path) -> None:
    """
    While a process has it another is refused, and told which has it; when that is killed the folder is free.
    """
    with other_process(OPENING, tmp_path) as (pid, said):
        assert said == "opened"
        assert (tmp_path / ".lock").read_text() == f"{pid}\n"
        assert refused(tmp_path) == f"{tmp_path} is in use by process {pid}; stop it, or {ANOTHER}"
    assert start(tmp_path).start_number == 2


def test_kafka_s_lock_is_heeded(tmp_path: Path) -> None:
    """
    Kafka locks the same file in the same way, and does not say who it is.
    """
    start(tmp_path)
    with other_process(LOCKING_AS_KAFKA, tmp_path):
        assert refused(tmp_path) == f"{tmp_path} is in use by another process; stop it, or {ANOTHER}"


def test_lock_file_contains_only_the_pid(tmp_path: Path) -> None:
    """
    No digits of a longer earlier pid remain.
    """
    (tmp_path / ".lock").write_text("12345678901\n")
    start(tmp_path)
    assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_folder_is_locked_within_its_process(tmp_path: Path) -> None:
    """
    A second open in the same process is refused, and does not release the lock.
    """
    folder = FolderSession.open(tmp_path, LocalDisk(), 1)
    try:
        holder = f"this process, {os.getpid()}"
        assert refused(tmp_path) == f"{tmp_path} is in use by {holder}; stop it, or {ANOTHER}"
        with other_process(OPENING, tmp_path) as (_, said):
            assert said == f"{tmp_path} is in use by process {os.getpid()}; stop it, or {ANOTHER}"
    finally:
        folder.close()


def test_a_closed_folder_is_free(tmp_path: Path) -> None:
    """
    A folder can be had again once it is closed, and closing it a second time takes it from nobody.
    """
    folder = FolderSession.open(tmp_path, LocalDisk(), 1)
    folder.close()
    next_folder = FolderSession.open(tmp_path, LocalDisk(), 1)
    folder.close()
    try:
        with other_process(OPENING, tmp_path) as (_, said):
            assert "is in use by process" in said
    finally:
        next_folder.close()


def test_failed_start_releases_the_lock(tmp_path: Path) -> None:
    assert "free some space" in refused(tmp_path, disk=RecordingDisk(**{"write and sync": ENOSPC}))
    with other_process(OPENING, tmp_path) as (_, said):
        assert said == "opened"


def test_refused_lock_leaves_no_descriptor(tmp_path: Path) -> None:
    start(tmp_path)
    with other_process(OPENING, tmp_path):
        before = os.listdir("/dev/fd")
        refused(tmp_path)
        assert os.listdir("/dev/fd") == before
