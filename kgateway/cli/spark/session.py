"""
Jobs of Spark on topics: the options that say where topics and Spark are, the session, its progress, and its failures.
"""

import os
import re
import shutil
import sys
import tempfile
import zipfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgateway.cli.common.cluster_profiles import target
from kgateway.cli.common.errors import FAILED, FAILURE, INTERRUPTED, MISTAKE, USAGE, CommandError
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.common.progress import Progress, watching
from kgateway.cli.common.values import add_bootstrap, pair
from kgateway.observe.printable import printable
from kgateway.spark.signals import Interrupted, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).parents[3]
_PACKAGES = ("kgateway", "pyspark_kgateway")
_LOCAL = "local[*]"
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
}
_SOCKETS = "spark.python.unix.domain.socket"
_SOCKET_PATH_MAX = 107
_SOCKET_NAME = "/.01234567-89ab-cdef-0123-456789abcdef.sock"  # as Spark makes them
_LOGS_OF_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_CALLED = "An error occurred while calling"  # and then the name of an object of Java's
_SAYS_NOTHING = "Exception thrown in awaitResult"  # whose cause has the reason
_POLLED_S = 0.5
_SEVERAL = "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES]"  # and then one in each line
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (?P<words>.+)", re.MULTILINE)
_IN_PYTHON = re.compile(r"^(?:pyspark\.errors\.[\w.]+: )?(?:\w+\.)*(\w+): (?P<words>.+)", re.MULTILINE)


def spark_job(
    add_arguments: Callable[[ArgumentParser], None],
    run: Callable[[Namespace], Iterable[str | Json]],
    example: str,
    *,
    if_interrupted: Callable[[Namespace], str],
    failed: int = FAILED,
    has_json: bool = True,
) -> Command:
    """
    A command that runs a job. PySpark is imported when it runs. A failure is worded, and `if_interrupted` says what a
    job has done so far, and how to continue.
    """

    def add_all(parser: ArgumentParser) -> None:
        add_arguments(parser)
        _add_session(parser)
        add_example(parser, example)

    def output(options: Namespace) -> Iterator[str | Json]:
        try:
            yield from run(options)
        except KeyboardInterrupt as interrupt:
            code = interrupt.exit_code if isinstance(interrupt, Interrupted) else INTERRUPTED
            raise CommandError(f"interrupted: {if_interrupted(options)}", code) from interrupt
        except ModuleNotFoundError:
            raise
        except CommandError as error:
            if error.exit_code != MISTAKE:
                error.exit_code = failed
            raise
        except Exception as error:
            from kgateway.cli.common.cluster import unreachable
            from kgateway.client.connection import Unanswered

            if isinstance(error, Unanswered):
                raise unreachable(error, options, failed) from error
            reason = _reason(error)
            if reason is None:
                raise
            raise CommandError(reason, *_codes(error, failed)) from error

    return Command(add_all, output, has_json)


def _add_session(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--master",
        metavar="MASTER",
        default=_LOCAL,
        help=f"where Spark runs: {_LOCAL}, or spark://HOST:PORT of a cluster (default {_LOCAL})",
    )
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        type=pair,
        action="append",
        default=[],
        help="a setting of Spark, such as spark.driver.memory=2g; may be repeated",
    )


def add_topics(parser: ArgumentParser) -> None:
    add_bootstrap(parser)
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        type=pair,
        action="append",
        default=[],
        help="an option of the data source, such as kgateway.log.folder=FOLDER; may be repeated",
    )


def source_options(options: Namespace) -> dict[str, str]:
    """
    The options of the data source, which say where topics are.
    """
    given = dict(options.option)
    if options.bootstrap:
        given["kafka.bootstrap.servers"] = options.bootstrap
    elif options.cluster or not given.keys() & {"kafka.bootstrap.servers", "kgateway.log.folder", "kgateway.filer"}:
        options.target = target(options.cluster)
        given["kafka.bootstrap.servers"] = options.target.bootstrap
    return given


@contextmanager
def session(options: Namespace) -> Iterator["SparkSession"]:
    """
    Spark, which ends with the job. Executors get our packages from here, and the data source is registered.
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise CommandError("Spark needs Java 17 or newer: there is no `java` on the PATH, and JAVA_HOME is not set")
    is_local = options.master.startswith("local")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from pyspark_kgateway import DefaultSource

    hush_errors()
    builder = SparkSession.builder.master(options.master).appName(f"kgateway spark {options.kind}")
    with tempfile.TemporaryDirectory(prefix="kgateway-spark-") as folder:
        for name, value in settings(options, folder).items():
            builder = builder.config(name, value)
        with running(_hushed(Path(folder) / "java-start")(builder.getOrCreate)) as spark:
            if not _is_one_process(options):
                spark.sparkContext.addPyFile(str(_packed(Path(folder))))
            spark.dataSource.register(DefaultSource)
            yield spark


def settings(options: Namespace, folder: str) -> dict[str, str]:
    """
    Spark's settings, with a folder for temporary files.
    """
    tables = {"spark.sql.warehouse.dir": f"{folder}/tables"}  # by default it is made in the current folder
    return _QUIET | (_sockets(folder) if _is_one_process(options) else {}) | tables | dict(options.conf)


def _sockets(folder: str) -> dict[str, str]:
    """
    Unix sockets between Java and Python, which are faster than the loopback interface. Spark does not remove them.
    """
    if len(os.fsencode(folder + _SOCKET_NAME)) > _SOCKET_PATH_MAX:
        return {}
    return {f"{_SOCKETS}.enabled": "true", f"{_SOCKETS}.dir": folder}


def _is_one_process(options: Namespace) -> bool:
    """
    Whether tasks run in the driver's JVM.
    """
    return bool(re.fullmatch(r"local(\[.*\])?", options.master))


def hush_errors() -> None:
    """
    Keep PySpark from logging every error with its traceback; we print the reason.
    """
    from pyspark.logger import PySparkLogger

    for name in _LOGS_OF_ERRORS:
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _hushed(said: Path) -> Iterator[None]:
    """
    Send the stderr of Java to a file, from its start on; it is printed where Java does not start.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with open(said, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except Exception as error:
        os.dup2(stderr, 2)
        for line in said.read_text(errors="replace").splitlines():
            print(printable(line), file=sys.stderr)
        raise CommandError(f"Spark does not start: {error}") from error
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def stages(spark: Any, what: str) -> AbstractContextManager[None]:
    """
    Show how many tasks of Spark's running stages are done.
    """
    tracker = spark.sparkContext.statusTracker()
    seen: dict[int, tuple[int, int]] = {}  # tasks that are done, and all, by stage

    def tasks() -> tuple[int, int] | None:
        active = {number: tracker.getStageInfo(number) for number in tracker.getActiveStageIds()}
        seen.update({number: (total, total) for number, (_, total) in seen.items()})
        seen.update({number: (one.numCompletedTasks, one.numTasks) for number, one in active.items() if one})
        return (sum(done for done, _ in seen.values()), sum(total for _, total in seen.values())) if seen else None

    return watching(Progress(what, "tasks"), tasks, _POLLED_S)


def _reason(error: Exception) -> str | None:
    """
    The reason of a failure; None if it is a bug in our program.
    """
    from kgateway.spark.errors import DataLost, Unreadable, Unwritten, WrongOption
    from kgateway.wire.errors import KafkaError, Malformed

    known = DataLost | KafkaError | Malformed | OSError | Unreadable | Unwritten | WrongOption
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, known):
        return str(error)
    if type(error).__module__.startswith(("pyspark", "py4j")):
        return in_words(str(error))
    return None


def _codes(error: Exception, failed: int) -> tuple[int, str]:
    """
    The exit code, and the code for programs.
    """
    from kgateway.spark.errors import WrongOption
    from kgateway.wire.errors import KafkaError

    if isinstance(error, WrongOption):
        return MISTAKE, USAGE
    if isinstance(error, KafkaError):
        return failed, error.code.name
    return failed, FAILURE


def in_words(trace: str) -> str:
    """
    The reason in what Spark says of a failure: that of Python where there is one, else that of Java.
    """
    in_python = trace.rpartition("Traceback (most recent call last)")[2] if "Traceback" in trace else ""
    found: list[str] = [one["words"] for one in _IN_PYTHON.finditer(in_python)]
    if found:
        return found[0]
    first, _, rest = trace.strip().partition("\n")
    if not first.startswith(_CALLED):
        reason = rest.partition("\n")[0].strip() if first.startswith(_SEVERAL) else first
        return reason.rstrip("; ")
    kind, _, words = rest.lstrip(": ").partition("\n")[0].partition(": ")
    causes: list[str] = [one["words"] for one in _CAUSE.finditer(rest)]
    if words.startswith(_SAYS_NOTHING) and causes:
        return causes[-1]
    return words or kind or first


def _packed(folder: Path) -> Path:
    """
    Our packages as a file, for executors without them.
    """
    path = folder / "kgateway.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in _PACKAGES:
            for file in sorted((_ROOT / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    packed.write(file, file.relative_to(_ROOT))
    return path
