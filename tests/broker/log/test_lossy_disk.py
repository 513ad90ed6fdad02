"""
The simulated disk: what it keeps, and that it can lose everything else.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import EIO, ENOSPC
from pathlib import Path
from random import Random

import pytest

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.files.local_disk import LocalDisk
from tests.broker.log.lossy_disk import LossyDisk, LossyFile, PowerLoss

DATA = Path("/data")
LOG = DATA / "log"
SEEDS = range(300)
MORE_SEEDS = range(3000)


def disks(seeds: range = SEEDS) -> Iterator[LossyDisk]:
    """
    Disks that differ by chance alone, with a folder that is sure.
    """
    for seed in seeds:
        disk = LossyDisk(Random(seed))
        disk.make_folder(DATA)
        disk.sync_folder(Path("/"))
        yield disk


def sure_file(disk: LossyDisk, data: bytes = b"", path: Path = LOG) -> LossyFile:
    """
    A file of which this much will outlast the machine.
    """
    file = disk.open(path, create=True)
    file.append([data])
    file.sync()
    disk.sync_folder(path.parent)
    return file


def found(disk: LossyDisk, path: Path = LOG) -> bytes | None:
    """
    What is in a file, if it is there.
    """
    try:
        return disk.read(path)
    except FileNotFoundError:
        return None


def after_crashes(
    use: Callable[[LossyDisk], object], look: Callable[[LossyDisk], object] = found, seeds: range = SEEDS
) -> set[object]:
    """
    What can be found after a crash, where the disk was used like this.
    """
    seen = set[object]()
    for disk in disks(seeds):
        use(disk)
        seen.add(look(disk.crash()))
    return seen


@pytest.fixture
def disk() -> LossyDisk:
    return next(disks())


class TestOrdinaryDisk:
    """
    As long as all is well it is a disk like any other.
    """

    @pytest.mark.parametrize("kind", ["lossy", "local"])
    def test_what_is_written_is_read(self, kind: str, tmp_path: Path, disk: LossyDisk) -> None:
        """
        Both disks give the same answers.
        """
        chosen: Disk = disk if kind == "lossy" else LocalDisk()
        folder = DATA if kind == "lossy" else tmp_path
        chosen.make_folder(folder / "a" / "b")
        chosen.make_folder(folder / "a")
        file = chosen.open(folder / "a" / "f", create=True)
        file.append([b"one", memoryview(b"two")])
        file.append([b"three"])
        file.truncate(7)
        file.sync()
        file.write_early(0, 7)
        assert (file.size, file.read(0, 99), file.read(2, 3)) == (7, b"onetwot", b"etw")
        chosen.rename(folder / "a" / "f", folder / "a" / "b" / "g")
        file.append([b"!"])
        file.close()
        chosen.write(folder / "a" / "small", b"old", sync=False)
        chosen.write(folder / "a" / "small", b"news", sync=True)
        chosen.sync_folder(folder / "a")
        assert chosen.read(folder / "a" / "b" / "g") == b"onetwot!"
        assert chosen.names(folder / "a" / "b") == {"g": 8}
        names = chosen.names(folder / "a")
        assert (sorted(names), names["small"]) == (["b", "small"], 4)
        chosen.rename(folder / "a", folder / "c")
        chosen.remove(folder / "c" / "b" / "g")
        chosen.remove(folder / "c" / "b")
        assert list(chosen.names(folder / "c")) == ["small"]

    @pytest.mark.parametrize("kind", ["lossy", "local"])
    def test_what_cannot_be_done(self, kind: str, tmp_path: Path, disk: LossyDisk) -> None:
        """
        Both disks refuse the same things.
        """
        chosen: Disk = disk if kind == "lossy" else LocalDisk()
        folder = DATA if kind == "lossy" else tmp_path
        chosen.write(folder / "file", b"", sync=False)
        chosen.make_folder(folder / "full")
        chosen.write(folder / "full" / "f", b"", sync=False)
        chosen.make_folder(folder / "empty")
        missing = folder / "missing"
        for call, kind_of_error in [
            (lambda: chosen.open(missing), FileNotFoundError),
            (lambda: chosen.open(missing / "x", create=True), FileNotFoundError),
            (lambda: chosen.open(folder / "full"), IsADirectoryError),
            (lambda: chosen.open(folder / "file" / "x"), NotADirectoryError),
            (lambda: chosen.read(missing), FileNotFoundError),
            (lambda: chosen.write(missing / "x", b"", sync=True), FileNotFoundError),
            (lambda: chosen.names(missing), FileNotFoundError),
            (lambda: chosen.names(folder / "file"), NotADirectoryError),
            (lambda: chosen.make_folder(folder / "file"), FileExistsError),
            (lambda: chosen.sync_folder(missing), FileNotFoundError),
            (lambda: chosen.rename(missing, folder / "x"), FileNotFoundError),
            (lambda: chosen.rename(folder / "empty", folder / "full"), OSError),
            (lambda: chosen.rename(folder / "file", folder / "empty"), IsADirectoryError),
            (lambda: chosen.rename(folder / "empty", folder / "file"), NotADirectoryError),
            (lambda: chosen.remove(missing), FileNotFoundError),
            (lambda: chosen.remove(folder / "full"), OSError),
        ]:
            with pytest.raises(kind_of_error):
                call()
        assert sorted(chosen.names(folder)) == ["empty", "file", "full"]

    def test_open_files_stay(self, disk: LossyDisk) -> None:
        """
        A file can be read as long as it is open, also when its name is gone.
        """
        file = sure_file(disk, b"there")
        disk.remove(LOG)
        assert file.read(0, 9) == b"there"

    def test_reads_may_need_the_disk(self) -> None:
        """
        What a read gets without waiting is all, a part, or nothing.
        """
        sizes = set()
        for disk in disks():
            file = sure_file(disk, b"0123")
            buffer = bytearray(4)
            size = file.read_into(memoryview(buffer), 0)
            assert buffer == b"0123"[:size].ljust(4, b"\0")
            sizes.add(size)
        assert sizes == {0, 1, 2, 3, 4}


class TestContent:
    """
    What is in files after a crash.
    """

    def test_what_was_synced_is_there(self) -> None:
        """
        A sync makes content and size sure.
        """
        assert after_crashes(lambda disk: sure_file(disk, b"x" * 9000)) == {b"x" * 9000}

    def test_what_was_not_synced_may_be_there(self) -> None:
        """
        All, none, or a part of it: the size is any, and what was not written is zeroes.
        """
        seen = after_crashes(lambda disk: sure_file(disk, b"a").append([b"b" * 99]))
        assert {b"a", b"a" + b"b" * 99, b"a" + bytes(99)} <= seen
        assert len({len(data) for data in seen if isinstance(data, bytes)}) > 10

    @pytest.mark.parametrize("unit", [512, 4096])
    def test_parts_are_written_in_any_order(self, unit: int) -> None:
        """
        Of a long piece any sectors, or pages, may be there.
        """
        seen = after_crashes(lambda disk: sure_file(disk).append([b"x" * unit * 3]), seeds=MORE_SEEDS)
        parts = [b"x" * unit, bytes(unit)]
        for first in parts:
            for second in parts:
                for third in parts:
                    assert first + second + third in seen

    def test_parts_are_written_at_any_time(self) -> None:
        """
        A later piece may be there without an earlier one, and a part of a sector that was written before it was full.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk)
            for letter in (b"a", b"b", b"c"):
                file.append([letter * 400])

        seen = after_crashes(use, seeds=MORE_SEEDS)
        a, b, c = b"a" * 400, b"b" * 400, b"c" * 400
        assert {a, a + b, a + b + c} <= seen, "cut cleanly"
        assert bytes(512) + (a + b + c)[512:] in seen, "the first sector was lost"
        assert a + bytes(112) + (a + b + c)[512:] in seen, "the first sector was written when it had but the first"

    def test_old_data_comes_back(self) -> None:
        """
        What was cut and written anew is the old, the new, or a mixture. Where the cut was sure, the old is gone.
        """

        def use(disk: LossyDisk) -> LossyFile:
            file = sure_file(disk, b"o" * 1024)
            file.truncate(0)
            return file

        def use_synced(disk: LossyDisk) -> None:
            file = use(disk)
            file.sync()
            file.append([b"n" * 1024])

        seen = after_crashes(lambda disk: use(disk).append([b"n" * 1024]))
        old, new = b"o" * 512, b"n" * 512
        assert {old + old, new + new, old + new, new + old, b"", bytes(512) + new} <= seen
        seen = after_crashes(use_synced)
        assert {new + new, b""} <= seen
        assert not any(b"o" in data for data in seen if isinstance(data, bytes))

    def test_writes_during_a_sync(self) -> None:
        """
        What is written while a sync runs is not sure when it ends.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk)
            file.append([b"before"])

            def meanwhile() -> None:
                disk.meanwhile = lambda: None
                file.append([b"during"])

            disk.meanwhile = meanwhile
            file.sync()
            assert disk.done["append"] == 3

        seen = after_crashes(use)
        assert {b"before", b"beforeduring"} <= seen
        assert all(data.startswith(b"before") for data in seen if isinstance(data, bytes))

    def test_syncs_overtake_each_other(self) -> None:
        """
        What one sync has made sure, another that began before it and ends after it leaves so.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk)
            file.append([b"one"])

            def meanwhile() -> None:
                disk.meanwhile = lambda: None
                file.append([b"two"])
                file.sync()

            disk.meanwhile = meanwhile
            file.sync()

        assert after_crashes(use) == {b"onetwo"}

    def test_writing_early_promises_nothing(self) -> None:
        """
        What the disk was told to begin to write may be lost.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk)
            file.append([b"x" * 9])
            file.write_early(0, 9)
            file.close()

        assert b"" in after_crashes(use)


class TestNames:
    """
    What is in folders after a crash.
    """

    def test_names_that_were_synced(self) -> None:
        """
        A sync of the folder makes a new name sure, a rename, a removal, a new folder.
        """

        def use(disk: LossyDisk) -> None:
            for name in ("removed", "renamed", "kept"):
                sure_file(disk, name.encode(), DATA / name)
            disk.remove(DATA / "removed")
            disk.rename(DATA / "renamed", DATA / "new")
            disk.make_folder(DATA / "folder")
            disk.sync_folder(DATA)

        def look(disk: LossyDisk) -> object:
            return found(disk, DATA / "new"), *sorted(disk.names(DATA))

        assert after_crashes(use, look) == {(b"renamed", "folder", "kept", "new")}

    def test_names_that_were_not_synced(self) -> None:
        """
        Without it each may be as it was, also where the file was synced; what was done first is not lost before what
        was done later.
        """

        def use(disk: LossyDisk) -> None:
            sure_file(disk, path=DATA / "a")
            sure_file(disk, path=DATA / "b")
            disk.open(DATA / "c", create=True).sync()
            disk.rename(DATA / "a", DATA / "d")
            disk.remove(DATA / "b")
            disk.make_folder(DATA / "e")

        def look(disk: LossyDisk) -> object:
            return "".join(sorted(disk.names(DATA)))

        assert after_crashes(use, look) == {"ab", "abc", "bcd", "cd", "cde"}

    def test_folders_are_lost_with_what_is_in_them(self) -> None:
        """
        A sync within a new folder does not make the folder sure.
        """

        def use(disk: LossyDisk) -> None:
            disk.make_folder(DATA / "new")
            sure_file(disk, b"x", DATA / "new" / "f")

        def look(disk: LossyDisk) -> object:
            return found(disk, DATA / "new" / "f")

        assert after_crashes(use, look) == {None, b"x"}

    def test_a_move_is_done_in_both_folders_or_none(self) -> None:
        """
        What moves from folder to folder is in one of them, and where one of them is synced, that is the new one.
        """

        def use(disk: LossyDisk) -> None:
            disk.make_folder(DATA / "a")
            disk.make_folder(DATA / "b")
            disk.sync_folder(DATA)
            sure_file(disk, path=DATA / "a" / "f")
            disk.rename(DATA / "a" / "f", DATA / "b" / "f")

        def use_synced(disk: LossyDisk) -> None:
            use(disk)
            disk.sync_folder(DATA / "a")

        def look(disk: LossyDisk) -> object:
            return *disk.names(DATA / "a"), "|", *disk.names(DATA / "b")

        assert after_crashes(use, look) == {("f", "|"), ("|", "f")}
        assert after_crashes(use_synced, look) == {("|", "f")}

    def test_a_rename_does_not_sync(self) -> None:
        """
        The name may be there without the content: a file that takes another's place may be found empty, or short.
        """

        def use(disk: LossyDisk) -> None:
            sure_file(disk, b"old")
            disk.write(LOG, b"new", sync=False)
            disk.sync_folder(DATA)

        seen = after_crashes(use)
        assert {b"", b"n", b"new", bytes(3)} <= seen
        assert b"old" not in seen

    def test_small_files(self) -> None:
        """
        A small file that is written with a sync is the new one; without, it may also be the old one, or damaged.
        """

        def use(disk: LossyDisk, sync: bool) -> None:
            disk.write(LOG, b"old", sync=True)
            disk.write(LOG, b"new", sync=sync)
            assert list(disk.names(DATA)) == ["log"]

        assert after_crashes(lambda disk: use(disk, True)) == {b"new"}
        assert {b"old", b"new", b""} <= after_crashes(lambda disk: use(disk, False))


class TestEnds:
    """
    Processes that are killed, and operations that are cut off.
    """

    def test_a_process_is_killed(self, disk: LossyDisk) -> None:
        """
        All it wrote is there for the next one, and is no more sure than before.
        """
        disk.open(LOG, create=True).append([b"x"])
        again = disk.kill()
        assert found(again) == b"x"

        def use(disk: LossyDisk) -> LossyDisk:
            sure_file(disk)
            disk.open(LOG).append([b"x"])
            return disk.kill()

        assert {found(use(each).crash()) for each in disks()} == {b"", b"x", b"\0"}

    def test_nothing_is_done_afterwards(self, disk: LossyDisk) -> None:
        """
        Who outlives the machine, as a thread may in a test, does nothing more.
        """
        file = sure_file(disk)
        again = disk.crash()
        for use in (lambda: file.append([b"x"]), file.sync, lambda: file.read(0, 1), lambda: disk.names(DATA)):
            with pytest.raises(PowerLoss):
                use()
        assert found(again) == b""

    def test_operations_are_cut_off(self) -> None:
        """
        From the one on that is too late, nothing is done; of that one, all, or nothing, or of a write a part.
        """
        seen = set()
        for disk in disks():
            file = sure_file(disk)
            disk.stop_after(2)
            file.append([b"1"])
            file.append([b"2"])
            for _ in range(2):
                with pytest.raises(PowerLoss):
                    file.append([b"345"])
            seen.add(found(disk.kill()))
        assert seen == {b"12", b"123", b"1234", b"12345"}

    def test_names_are_cut_off(self) -> None:
        """
        A rename that is cut off is done or not.
        """
        seen = set[str]()
        for disk in disks():
            sure_file(disk)
            disk.stop_after(0)
            with pytest.raises(PowerLoss):
                disk.rename(LOG, DATA / "new")
            seen.update(disk.kill().names(DATA))
        assert seen == {"log", "new"}

    def test_a_sync_that_is_cut_off_promises_nothing(self) -> None:
        """
        The power may go while a sync runs.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk)
            file.append([b"x"])
            disk.stop_after(0)
            with pytest.raises(PowerLoss):
                file.sync()

        assert after_crashes(use) == {b"", b"\0", b"x"}

    def test_everywhere(self) -> None:
        """
        Wherever a small file is cut off, the old one or the new one is there.
        """
        for number in range(7):
            for disk in disks():
                disk.write(LOG, b"old", sync=True)
                disk.stop_after(number)
                with suppress(PowerLoss):
                    disk.write(LOG, b"new", sync=True)
                assert found(disk.crash()) in ((b"new",) if number > 5 else (b"old", b"new"))


class TestFaults:
    @pytest.mark.parametrize("code", [EIO, ENOSPC])
    def test_an_append_fails(self, code: int, disk: LossyDisk) -> None:
        """
        The one that is meant fails, and leaves nothing; those before and after it do not.
        """
        file = sure_file(disk)
        disk.fail("append", 2, code)
        file.append([b"a"])
        with pytest.raises(OSError, match=rf"\[Errno {code}\]"):
            file.append([b"b"])
        assert (file.size, found(disk)) == (1, b"a")
        file.append([b"c"])
        assert found(disk) == b"ac"

    def test_failures_last(self, disk: LossyDisk) -> None:
        """
        A disk may stay full for some time, or until it is healed.
        """
        file = sure_file(disk)
        disk.fail("append", 1, ENOSPC, times=2)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                file.append([b"a"])
        file.append([b"b"])
        disk.fail("append", 1, ENOSPC, times=99)
        disk.heal()
        file.append([b"c"])
        assert found(disk) == b"bc"

    @pytest.mark.parametrize("name", ["open", "names", "rename", "remove", "make_folder", "sync_folder", "truncate"])
    def test_anything_fails(self, name: str, disk: LossyDisk) -> None:
        """
        What fails is not done.
        """
        file = sure_file(disk, b"x")
        disk.fail(name)
        calls: dict[str, Callable[[], object]] = {
            "open": lambda: disk.open(DATA / "new", create=True),
            "names": lambda: disk.names(DATA),
            "rename": lambda: disk.rename(LOG, DATA / "new"),
            "remove": lambda: disk.remove(LOG),
            "make_folder": lambda: disk.make_folder(DATA / "new"),
            "sync_folder": lambda: disk.sync_folder(DATA),
            "truncate": lambda: file.truncate(0),
        }
        with pytest.raises(OSError, match="Input/output"):
            calls[name]()
        assert disk.names(DATA) == {"log": 1}

    @pytest.mark.parametrize("name", ["open", "append", "sync", "rename"])
    def test_a_small_file_fails(self, name: str, disk: LossyDisk) -> None:
        """
        The old one stays, and nothing is left beside it.
        """
        disk.write(LOG, b"old", sync=True)
        disk.fail(name, code=ENOSPC)
        with pytest.raises(OSError, match="No space"):
            disk.write(LOG, b"new", sync=True)
        assert (found(disk), list(disk.names(DATA))) == (b"old", ["log"])

    def test_a_failed_append_may_leave_something(self) -> None:
        """
        After a crash a part of it may be there, as its removal may be lost; never all of it.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk)
            disk.fail("append")
            with pytest.raises(OSError, match="Input/output"):
                file.append([b"abc"])

        seen = after_crashes(use)
        assert {b"", b"a", b"ab"} <= seen
        assert b"abc" not in seen

    def test_a_failed_sync_is_final(self) -> None:
        """
        What it did not write is never sure, whatever is synced later; it is seen until the machine crashes.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk, b"sure")
            file.append([b"lost"])
            disk.fail("sync")
            with pytest.raises(OSError, match="Input/output"):
                file.sync()
            file.sync()
            file.append([b"late"])
            file.sync()
            assert found(disk) == b"surelostlate"

        assert after_crashes(use) == {b"sure\0\0\0\0late"}

    def test_what_was_lost_is_written_anew(self) -> None:
        """
        Who cuts what a failed sync has lost, and writes it again, has it.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk, b"sure")
            file.append([b"lost"])
            disk.fail("sync")
            with pytest.raises(OSError, match="Input/output"):
                file.sync()
            file.truncate(4)
            file.append([b"again"])
            file.sync()

        assert after_crashes(use) == {b"sureagain"}

    @pytest.mark.parametrize("syncs", ["", "ok", "fails", "fails ok", "ok fails ok", "fails again ok"])
    def test_what_was_lost_is_written_once_more(self, syncs: str) -> None:
        """
        What a failed sync has lost and is written once more outlasts the machine from the next sync on, if that one
        does not fail as well.
        """

        def use(disk: LossyDisk) -> None:
            file = sure_file(disk, b"sure")
            file.append([b"lost"])
            for how in ("fails", "again", *syncs.split()):
                if how == "again":
                    file.write_again(4, 4)
                elif how == "ok":
                    file.sync()
                else:
                    disk.fail("sync")
                    with pytest.raises(OSError, match="Input/output"):
                        file.sync()
            assert found(disk) == b"surelost"

        seen = after_crashes(use)
        if syncs in ("ok", "ok fails ok", "fails again ok"):
            assert seen == {b"surelost"}
        elif syncs == "fails ok":
            assert seen == {b"sure\0\0\0\0"}
        else:
            assert b"sure" in seen
            assert (b"surelost" in seen) == (syncs == "")


class TestSloppyWriters:
    """
    Who does not sync is caught: the simulation can lose what it should.
    """

    @pytest.mark.parametrize("forgotten", ["", "sync", "sync_folder", "both folders", "order"])
    def test_a_log_of_two_segments(self, forgotten: str) -> None:
        """
        A writer that syncs file and folder before it promises loses nothing. One that forgets either is caught within
        a few crashes, as is one that makes a folder and syncs only what is in it, and one that promises too early.
        """
        caught = sum(self.loses(disk, forgotten) for disk in disks())
        assert caught == 0 if not forgotten else caught > len(SEEDS) / 20

    def loses(self, disk: LossyDisk, forgotten: str) -> bool:
        """
        Whether something is lost that this writer promised.
        """
        promised = dict[Path, bytes]()
        folder = DATA / "topic"
        disk.stop_after(disk.chance.randint(8, 30))
        with suppress(PowerLoss):
            disk.make_folder(folder)
            if forgotten != "both folders":
                disk.sync_folder(DATA)
            for path in (folder / "0", folder / "1"):
                file = disk.open(path, create=True)
                if forgotten != "sync_folder":
                    disk.sync_folder(folder)
                for letter in (b"a", b"b", b"c", b"d"):
                    data = promised.get(path, b"") + letter * 300
                    file.append([letter * 300])
                    if forgotten == "order":
                        promised[path] = data
                    if forgotten != "sync":
                        file.sync()
                    promised[path] = data
        after = disk.crash()
        return any(not (found(after, path) or b"").startswith(data) for path, data in promised.items())
