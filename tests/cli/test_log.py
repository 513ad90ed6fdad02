"""
`kgateway log check` finds faults in the files of a log.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kgateway.broker.log.data_folder.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.data_folder.session import this_boot
from kgateway.broker.log.files.local_disk import LocalDisk, ReadOnlyDisk
from kgateway.cluster.config_resource import ConfigResource, ResourceType
from tests.broker.log.log_brokers import START_MS, log_broker
from tests.cli.log_folder import BATCH, COUNT, FIRST, LAST, SECOND, Run, change, done


def crash(data: Path) -> None:
    """
    Leave the folder as a killed process does.
    """
    (data / ".kafka_cleanshutdown").unlink()


def test_a_good_folder(data: Path, run: Run) -> None:
    """
    One line sums up, the exit code is 0, and nothing is changed.
    """
    before = seen(data)
    ended = run("check", data)
    assert ended.code == 0
    assert len(ended.lines) == 1
    assert ended.lines[0].startswith(
        f"{len(before) - 2} files, {COUNT} batches, {COUNT} records according to batch headers, 2.3 MiB"
    )
    assert ended.lines[0].endswith(": nothing is wrong")
    run("dump", data, "--records")
    assert seen(data) == before


def seen(data: Path) -> dict[Path, tuple[int, int, bytes]]:
    """
    The inode, modification time and content of each file, which any write would change.
    """
    found = {path: path.stat() for path in data.rglob("*") if path.is_file()}
    return {path: (status.st_ino, status.st_mtime_ns, path.read_bytes()) for path, status in found.items()}


def test_a_damaged_batch(data: Path, run: Run) -> None:
    """
    The line has file, byte and offset, the fault, what consumers are answered, and what to do; later batches are
    checked too.
    """
    change(data / f"{FIRST}.log", 5 * BATCH + 100, b"x")
    ended = run("check", data)
    assert ended.code == 1
    assert ended.lines[0] == (
        f"data/{FIRST}.log, byte {5 * BATCH}, offset 5: the CRC of the batch does not match its contents, and its "
        f"{BATCH} bytes cannot be interpreted; consumers get CORRUPT_MESSAGE for offset 5 and can continue from 6; "
        "with the gateway stopped, restore the file from a copy to recover them"
    )
    assert ended.lines[1].endswith(": 1 finding")
    assert f"{COUNT - 1} batches" in ended.lines[1]


@pytest.mark.parametrize("length", [7, BATCH * 2, 1 << 30])
def test_a_batch_whose_length_is_damaged(data: Path, run: Run, length: int) -> None:
    """
    The index shows where the next batch begins.
    """
    change(data / f"{FIRST}.log", 5 * BATCH + 8, length.to_bytes(4, "big"))
    ended = run("check", data)
    assert ended.lines[0].startswith(f"data/{FIRST}.log, byte {5 * BATCH}, offset 5: ")
    assert "for offset 5 and can continue from 6" in ended.lines[0]
    assert f"{COUNT - 1} batches" in ended.lines[1]
    assert len(ended.lines) == 2


def test_a_batch_whose_offset_is_damaged(data: Path, run: Run) -> None:
    """
    The CRC does not cover the offset, which has to follow the previous batch.
    """
    change(data / f"{FIRST}.log", 5 * BATCH + 6, b"\1")
    ended = run("check", data)
    place = f"data/{FIRST}.log, byte {5 * BATCH}, offset 5: "
    assert ended.lines[0].startswith(
        f"{place}a batch with the offsets 261 to 261, where 5 is next, although its bytes are intact; consumers get"
    )
    assert run("check", data / "orders-0").code == 1  # the next offset is out of order


def test_damage_at_the_end_of_a_segment(data: Path, run: Run) -> None:
    """
    Nothing is known beyond it, and the next segment does not begin where this one ends.
    """
    path = data / f"{FIRST}.log"
    change(path, 16 * BATCH + 16, b"\7")
    first, second, summary = run("check", data).lines
    assert first.startswith(f"data/{FIRST}.log, byte {16 * BATCH}, offset 16: ")
    assert "the records in them, from offset 16 on, are lost" in first
    assert second.startswith(f"data/{SECOND}.log, offset 16: offsets 16 to 16 are missing before it; ")
    assert f"{COUNT - 1} batches" in summary


def test_half_a_batch_after_a_crash(data: Path, run: Run) -> None:
    """
    A torn end of the last segment is no fault after a crash, but one in a closed folder.
    """
    path = data / f"{LAST}.log"
    path.write_bytes(
        path.read_bytes() + path.read_bytes()[:BATCH].replace(bytes(7) + b"\x22", bytes(7) + b"\x28", 1)[:999]
    )
    closed = run("check", data)
    crash(data)
    crashed = run("check", data)
    assert (closed.code, crashed.code) == (1, 0)
    place = f"data/{LAST}.log, byte {6 * BATCH}, offset 40: "
    assert closed.lines[0].startswith(place)
    assert crashed.lines[0].startswith(
        f"(no fault) {place}it has an incomplete batch, of which only the first 999 bytes were written; no action"
    )


INDEXES = [
    (".index", 12, b"\0\0\1\0", "byte 8: entry 1 of 16 is wrong, it has (2, 256) after (1, 60078); remove"),
    (".index", 8, b"\0\0\0\1", "byte 8: entry 1 of 16 is wrong, it has offset 1, but the batch there ends with 2"),
    (".index", 16 * 8 - 4, b"\7\0\0\0", "byte 120: entry 15 of 16 is wrong, it points to byte 117440512, but the log"),
    (".timeindex", 19, b"\1", "byte 12: entry 1 of 16 is wrong, it has timestamp "),
    (".timeindex", 12 + 11, b"\1", "byte 12: entry 1 of 16 is wrong, it has "),
]


@pytest.mark.parametrize(("suffix", "position", "bytes_", "told"), INDEXES)
def test_a_wrong_entry_of_an_index(data: Path, run: Run, suffix: str, position: int, bytes_: bytes, told: str) -> None:
    """
    The line has the entry's number and byte, its value, and the right one.
    """
    change((data / FIRST).with_suffix(suffix), position, bytes_)
    ended = run("check", data)
    assert ended.code == 1
    assert ended.lines[0].startswith(f"data/{FIRST}{suffix}, {told}"), ended.lines
    assert "; remove this file while the gateway is stopped: it is rebuilt from the batches" in ended.lines[0]
    assert len(ended.lines) == 2


def test_an_incomplete_time_index(data: Path, run: Run) -> None:
    """
    A search by time would miss records.
    """
    path = (data / FIRST).with_suffix(".timeindex")
    path.write_bytes(path.read_bytes()[:-12])
    ended = run("check", data)
    assert ended.code == 1
    assert f"no timestamp after {START_MS + 15_000}, but offset 16 has {START_MS + 16_000}" in ended.lines[0]


def remove(path: Path) -> None:
    path.unlink()


def rewrite(text: str) -> Callable[[Path], None]:
    """
    Replaces the text of a file.
    """

    def written(path: Path) -> None:
        path.write_text(text)

    return written


def harmed(position: int) -> Callable[[Path], None]:
    """
    Change a byte of a file.
    """

    def changed(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(data)

    return changed


FILES = [
    ("meta.properties", rewrite("kgateway.format=1\nversion=1\n"), "has no line cluster.id; restore it"),
    ("kgateway.start", rewrite("{}"), "cannot be read; restore it from a copy, or write"),
    ("kgateway.topics", remove, "it is missing, and clients see no topics; restore it from a copy"),
    ("kgateway.configs", rewrite("?"), "is damaged; restore it from a copy, or remove it"),
    ("kgateway.producer-ids", rewrite("?"), "is damaged; restore it from a copy, or write"),
    (
        "kgateway.producer-ids",
        rewrite('{"reserved": 0}'),
        "ids below 0 were assigned, but producer 0 has written records",
    ),
    (
        "kgateway.topics",
        harmed(-1),
        "line 1 is damaged, and it was intact once: the gateway was shut down cleanly",
    ),
    (
        "kgateway.topics",
        harmed(-2),
        "line 1 is damaged, and it was intact once: the gateway was shut down cleanly",
    ),
    ("kgateway.settled", rewrite(f"0\n1\norders 0 {'9' * 5000}\n"), "it is damaged; no action is needed"),
    ("kgateway.start", rewrite(f'{{"start_number": {"9" * 5000}}}'), "cannot be read; restore it from a copy"),
    ("kgateway.producer-ids", rewrite(f'{{"reserved": {"9" * 5000}}}'), "is damaged; restore it from a copy"),
    ("kgateway.producer-ids", remove, "it is missing, but producer 0 has written records"),
    (
        "kgateway.settled",
        rewrite("0\n1\norders 0 41\n"),
        "it has partition orders-0 up to offset 41, but the log ends",
    ),
    ("recovery-point-offset-checkpoint", rewrite("0\n2\norders 0 1\n"), "it is damaged; no action is needed"),
    ("recovery-point-offset-checkpoint", rewrite("0\n1\norders 0 41\n"), "it has partition orders-0 up to offset 41"),
    ("orders-0/leader-epoch-checkpoint", rewrite("0\n2\n0 0\n"), "it is damaged; with the gateway stopped, remove it"),
    (
        "orders-0/leader-epoch-checkpoint",
        rewrite("0\n1\n3 0\n"),
        "it has leader epoch 3, but the batch there has 0",
    ),
    ("orders-0/leader-epoch-checkpoint", rewrite("0\n2\n0 0\n1 41\n"), "in it leader epoch 1 begins at offset 41, but"),
    ("orders-0/leader-epoch-checkpoint", remove, "it is missing"),
    (f"orders-0/{40:020d}.snapshot", rewrite("\0\1"), "it is damaged, and batches that producers repeat might not be"),
    (
        f"orders-0/{40:020d}.snapshot",
        lambda path: path.rename(path.with_stem(f"{41:020d}")),
        "up to offset 41, but the",
    ),
    (f"{FIRST}.index", remove, "it is missing; no action is needed"),
    (f"{FIRST}.timeindex", remove, "it is missing; no action is needed"),
    (f"{SECOND}.log", remove, "it is the index of a missing segment"),
    (f"{SECOND}.log", remove, "offsets 17 to 33 are missing before it"),
    (
        f"{SECOND}.log",
        lambda path: shutil.copy(path, path.with_stem(f"{30:020d}")),
        "but the segment before it ends with",
    ),
    (
        "orders-0/partition.metadata",
        rewrite("version: 0\ntopic_id: 2aVnXVTvT1q0kVBXWFl3bA\n"),
        "but the topic orders has",
    ),
    ("orders-0/kgateway.state-00000000000000000003", rewrite("?"), "1 byte left, but a batch has at least 61"),
]


def test_group_configs_are_known(data: Path, run: Run) -> None:
    """
    Their file is checked, and dumped.
    """
    resource = ConfigResource(ResourceType.GROUP, "billing")
    ConfigFile.open(data / CONFIGS, LocalDisk()).write({resource: {"consumer.session.timeout.ms": "60000"}})
    ended = run("check", data)
    assert (ended.code, [line for line in ended.lines if CONFIGS in line]) == (0, [])
    assert any("billing" in line for line in run("dump", data / CONFIGS).lines)


@pytest.mark.parametrize(("name", "harm", "told"), FILES, ids=[told for _, _, told in FILES])
def test_faults_of_other_files(data: Path, run: Run, name: str, harm: Callable[[Path], None], told: str) -> None:
    """
    Each fault is a finding.
    """
    harm(data / name)
    ended = run("check", data)
    assert ended.code == 1
    assert any(told in line for line in ended.lines), ended.lines


@pytest.mark.parametrize("boot_id", [this_boot(), "another"])
def test_a_topic_journal_after_a_crash(data: Path, run: Run, boot_id: str | None) -> None:
    """
    A partial line is no fault; a complete but wrong line is one, and so are zeroes if only the process has died.
    """
    crash(data)
    (data / "kgateway.start").write_text(json.dumps({"start_number": 1, "boot_id": boot_id}))
    path = data / "kgateway.topics"
    good = path.read_bytes()
    path.write_bytes(good + good[:30])
    ended = run("check", data)
    assert (ended.code, ended.lines[0]) == (
        0,
        "(no fault) data/kgateway.topics: the last 30 bytes belong to a change that was not completed; "
        "no action is needed: it was not acknowledged",
    )
    path.write_bytes(good + bytes(30))
    assert run("check", data).code == (1 if boot_id == this_boot() else 0)
    path.write_bytes(good[:-2] + b"x\n")
    ended = run("check", data)
    assert ended.code == 1
    assert ended.lines[0].startswith(
        "data/kgateway.topics: line 1 is damaged, and a crash does not leave it like this; restore"
    )


def refuse(monkeypatch: pytest.MonkeyPatch, refused: Path) -> None:
    """
    Let the disk refuse to read a file or a folder, as it does for users without permission.
    """

    def refusing(name: str) -> Callable[[ReadOnlyDisk, Path], object]:
        real = getattr(ReadOnlyDisk, name)

        def call(disk: ReadOnlyDisk, path: Path) -> object:
            if path == refused or (refused.is_dir() and refused in path.parents):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(disk, path)

        return call

    for name in ("open", "read", "names"):
        monkeypatch.setattr(ReadOnlyDisk, name, refusing(name))


@pytest.mark.parametrize(
    "name",
    [
        "kgateway.topics",
        "recovery-point-offset-checkpoint",
        "kgateway.settled",
        "orders-0",
        "orders-0/leader-epoch-checkpoint",
        f"{FIRST}.log",
        f"{SECOND}.log",
        f"{LAST}.log",
        f"{LAST}.index",
    ],
)
def test_what_cannot_be_read(data: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """
    It is the only finding, and the rest is checked: nothing is said to be lost, and nothing is to be removed.
    """
    refuse(monkeypatch, data / name)
    ended = run("check", data)
    remedy = "check its disk and its permissions, and restore it from a copy"
    assert ended.lines[:-1] == [f"data/{name}: it cannot be read: Permission denied; {remedy}"]
    assert (ended.code, ended.errors) == (1, "")
    assert ended.lines[-1].endswith(": 1 finding")


def test_log_starts_that_cannot_be_read(data: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The first segments may have been deleted with their leader epochs.
    """
    (data / "log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 20\n")
    refuse(monkeypatch, data / "log-start-offset-checkpoint")
    assert len(run("check", data).lines) == 2


def test_an_empty_folder_without_a_topic(data: Path, run: Run) -> None:
    """
    It is no fault.
    """
    (data / "foreign-0").mkdir()
    ended = run("check", data)
    assert (ended.code, ended.lines[0]) == (
        0,
        "(no fault) data/foreign-0: it is not the folder of a partition of any topic, and is empty; "
        "the next start puts it aside",
    )


@pytest.mark.parametrize("name", ["orders-0", "unknown-0"])
def test_a_folder_that_names_no_topic(data: Path, run: Run, name: str) -> None:
    """
    The file is missing, and nothing was deleted meanwhile.
    """
    (data / "orders-0" / "partition.metadata").unlink()
    if name == "unknown-0":
        shutil.copytree(data / "orders-0", data / name)
    told = {
        "orders-0": f"data/{name}/partition.metadata: it is missing; no action is needed: it is written when",
        "unknown-0": f"data/{name}: it is not the folder of a partition of any topic; restore kgateway.topics from",
    }
    assert any(line.startswith(told[name]) for line in run("check", data).lines)


def test_a_folder_without_a_topic(data: Path, run: Run) -> None:
    """
    It may be an old partition, or belong to a lost topic.
    """
    shutil.copytree(data / "orders-0", data / "orders-2")
    shutil.copytree(data / "orders-0", data / "unknown-0")
    ended = run("check", data)
    assert ended.code == 1
    assert [line.partition(";")[0] for line in ended.lines[:2]] == [
        "data/orders-2: it is not the folder of a partition of any topic",
        "data/unknown-0: it is not the folder of a partition of any topic",
    ]


def test_a_folder_of_a_deleted_topic(data: Path, run: Run) -> None:
    """
    A crash may precede the removal of its files, which is no fault.
    """
    broker = log_broker(data)
    done(broker.start())
    shutil.copytree(data / "orders-0", data.parent / "kept")
    done(broker.delete_topic(broker.view().topics["orders"].id))
    shutil.rmtree(data / "orders-0", ignore_errors=True)
    (data.parent / "kept").rename(data / "orders-0")
    done(broker.stop())
    ended = run("check", data)
    assert ended.code == 0
    assert ended.lines[0] == (
        "(no fault) data/orders-0: it is not the folder of a partition of any topic: its topic was deleted; "
        "the next start puts it aside"
    )


def test_a_missing_partition_folder(data: Path, run: Run) -> None:
    """
    A checkpoint names it; an unused partition is in no checkpoint.
    """
    shutil.rmtree(data / "orders-0")
    assert "it has partition orders-0 up to offset 40, but that partition has no folder" in run("check", data).lines[0]
    shutil.rmtree(data / "orders-1")
    assert not any("orders-1" in line for line in run("check", data).lines)


def test_leftover_files_are_no_fault(data: Path, run: Run) -> None:
    """
    Files that were set aside, left by a crash or made by others are named, with exit code 0.
    """
    (data / "orders-7.0-stray").mkdir()
    for name in ("orders-0/00000000000000000000.log.cut-7", "kgateway.topics.1-2-3.tmp", "orders-0/x.tmp", "notes.txt"):
        (data / name).touch()
    (data / "orders-1.2aVnXVTvT1q0kVBXWFl3bA-delete").mkdir()
    ended = run("check", data)
    assert ended.code == 0
    assert [line.startswith("(no fault) ") for line in ended.lines] == [True] * 6 + [False]


def test_a_part_of_a_folder(data: Path, run: Run) -> None:
    """
    Only the named partitions are checked.
    """
    change(data / f"{FIRST}.log", 100, b"x")
    assert run("check", data, "--partition", "orders-1").code == 0
    assert run("check", data, "--partition", "orders-1", "--partition", "orders-0").code == 1
    assert run("check", data / "orders-0").code == 1
    assert run("check", data / f"{FIRST}.log").code == 1
    assert run("check", data / f"{SECOND}.log").code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "nowhere cannot be read: No such file or directory"),
        (
            ["data/kgateway.start"],
            "data/kgateway.start cannot be checked on its own; name a data folder, the folder of a",
        ),
        (
            ["data", "--partition", "orders-7"],
            "there is no partition orders-7 in data; only partitions that were used ha",
        ),
        (["."], ". is not a data folder; did you mean data?"),
        (["elsewhere"], "elsewhere is not a data folder; did you mean elsewhere/kgateway-data?"),
        (["elsewhere/twistd.log"], "elsewhere/twistd.log cannot be checked on its own; name a data folder"),
        (["elsewhere/0.log"], "elsewhere/0.log cannot be checked on its own; name a data folder"),
        (["empty"], "empty is neither a data folder nor the folder of a partition"),
        (
            ["kafka"],
            "kafka is not the data folder of a kgateway; if it is Kafka's data folder, name the folder of a partition",
        ),
    ],
)
def test_paths_that_cannot_be_checked(data: Path, run: Run, arguments: list[str], told: str) -> None:
    """
    The reason is one line on stderr, with exit code 2.
    """
    Path("empty").mkdir()
    Path("elsewhere").mkdir()
    for name in ("elsewhere/twistd.log", "elsewhere/0.log"):
        Path(name).touch()
    shutil.copytree(data, "elsewhere/kgateway-data")
    Path("kafka").mkdir()
    Path("kafka/meta.properties").write_text("version=1\nnode.id=1\n")
    ended = run("check", *arguments)
    assert (ended.code, ended.lines) == (2, [])
    assert ended.errors.startswith(f"kgateway log check: {told}")
    assert ended.errors.count("\n") == 1


def test_unknown_files_are_left_alone(data: Path, run: Run) -> None:
    """
    No line advises to remove a file that kgateway does not know.
    """
    for folder in (data, data / "orders-0"):
        (folder / "notes.txt").touch()
    ended = run("check", data)
    assert ended.code == 0
    what = "kgateway does not know this file; no action is needed: it is left as it is"
    assert ended.lines[:-1] == [f"(no fault) data/{name}: {what}" for name in ("notes.txt", "orders-0/notes.txt")]


def test_a_folder_in_use(data: Path, run: Run) -> None:
    """
    The line names the process, and a torn end is no fault.
    """
    crash(data)
    path = data / f"{LAST}.log"
    path.write_bytes(path.read_bytes() + bytes(7) + b"\x28")
    script = (
        "import sys; from pathlib import Path; from kgateway.broker.log.data_folder.folder_lock import FolderLock as L"
    )
    command = [sys.executable, "-c", f"{script}; lock = L(Path('data')); print('held', flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        ended = run("check", data)
        assert ended.code == 0
        assert ended.lines[0].startswith(f"data is in use by process {holder.pid}: ")
        assert "a batch is being written there; no action is needed" in ended.lines[1]
        holder.communicate()


def test_folders_of_kafka(data: Path, run: Run) -> None:
    """
    Kafka preallocates the indexes of an active segment, and leaves gaps where it compacts.
    """
    for suffix in (".index", ".timeindex"):
        with (data / LAST).with_suffix(suffix).open("ab") as file:
            file.write(bytes(12 * 8 * 10))
    for path in (data / "orders-0").glob(f"{17:020d}.*"):
        path.unlink()
    assert run("check", data).code == 1
    ended = run("check", data / "orders-0")
    assert (ended.code, len(ended.lines)) == (0, 1)


def delete(data: Path, offset: int) -> None:
    """
    Delete the records of orders-0 before this offset.
    """
    broker = log_broker(data)
    done(broker.start())
    done(broker.partition(broker.view().topics["orders"].id, 0).delete_before(offset))
    done(broker.stop())


def test_deleted_records(data: Path, run: Run) -> None:
    """
    Deleted records are no fault, and the files left of them are named; a check of the partition alone finds none
    either.
    """
    delete(data, 20)
    before = seen(data)
    ended = run("check", data)
    assert ended.code == 0
    left = "files are left over from deleted records; no action is needed: they are removed when the partition"
    assert ended.lines[0].startswith(f"(no fault) data/orders-0: 3 {left}")
    assert f" {COUNT - 17} batches" in ended.lines[-1]
    assert run("check", data / "orders-0").code == 0
    assert seen(data) == before


def test_orphaned_segments(data: Path, run: Run) -> None:
    """
    A crash may leave some files of deleted segments, which are no fault, nor are their epochs.
    """
    path = data / "orders-0"
    delete(data, 36)
    for name in (f"{SECOND}.log", f"{FIRST}.index"):
        (data / f"{name}.deleted").rename(data / name)
    change(data / f"{SECOND}.log", 100, b"x")
    ended = run("check", data)
    assert ended.code == 0
    assert "are left over from deleted records" in ended.lines[0]
    assert len(ended.lines) == 2
    assert (path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 36\n1 40\n"


def test_wrong_log_starts(data: Path, run: Run) -> None:
    """
    A start beyond the end of its log and an unreadable file are findings.
    """
    path = data / "log-start-offset-checkpoint"
    path.write_bytes(f"0\n1\norders 0 {COUNT + 1}\n".encode())
    ended = run("check", data)
    assert ended.code == 1
    assert ended.lines[-2].startswith(f"data/{path.name}: it has partition orders-0 up to offset {COUNT + 1}, but the")
    path.write_bytes(b"0\n2\norders 0 3\n")
    ended = run("check", data)
    assert ended.lines[0].startswith(f"data/{path.name}: it is damaged; restore it from a copy")
