"""
What the jobs of Spark share: the options that say where topics and Spark are, the session, and how failures are told.
"""

import os
import re
import sys
import tempfile
import zipfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kgateway.cli.pairs import pair
from kgateway.cli.refused import Refused
from kgateway.config.sources import BOOTSTRAP
from kgateway.observe.plain import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNDONE = 2  # exit code where a job cannot be done; 1 is for what a job finds

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("kgateway", "pyspark_kgateway")
_LOCAL = "local[*]"
_BOOTSTRAP = "127.0.0.1:9092"
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
# What brings what is imported only where it is needed; the second is for filers.
_EXTRAS = dict.fromkeys(("pyspark", "pyarrow", "numpy", "pandas", "fastavro"), "spark")
_EXTRAS |= dict.fromkeys(("h2", "google"), "seaweedmq")
_CALLED = "An error occurred while calling"  # and then which object of Java's, which says nothing to anybody
_SAYS_NOTHING = "Exception thrown in awaitResult"  # but what it was caused by
_SEVERAL = "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES]"  # and then one in each line
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (?P<words>.+)", re.MULTILINE)
_TOLD_IN_PYTHON = re.compile(r"^(?:pyspark\.errors\.[\w.]+: )?(?:\w+\.)*(\w+): (?P<words>.+)", re.MULTILINE)


def add_session(parser: ArgumentParser) -> None:
    """
    The options that say which Spark does the work.
    """
    parser.add_argument(
        "--master",
        metavar="MASTER",
        default=_LOCAL,
        help=f"where Spark runs, {_LOCAL} if not given, or spark://HOST:PORT of a cluster",
    )
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        type=pair,
        action="append",
        default=[],
        help="a setting of Spark, such as spark.driver.memory=2g; may be given several times",
    )


def add_topics(parser: ArgumentParser) -> None:
    """
    The options that say where the topics are.
    """
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help=f"a server of the cluster, or several with commas between; else ${BOOTSTRAP}, else {_BOOTSTRAP}",
    )
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        type=pair,
        action="append",
        default=[],
        help="an option of the data source, such as kgateway.log.folder=FOLDER; may be given several times",
    )


def source_options(options: Namespace) -> dict[str, str]:
    """
    What is said to the data source of where topics are.
    """
    given = dict(options.option)
    if options.bootstrap:
        given["kafka.bootstrap.servers"] = options.bootstrap
    elif not given.keys() & {"kafka.bootstrap.servers", "kgateway.log.folder", "kgateway.filer"}:
        given["kafka.bootstrap.servers"] = os.environ.get(BOOTSTRAP) or _BOOTSTRAP
    return given


@contextmanager
def session(options: Namespace) -> Iterator["SparkSession"]:
    """
    Spark, which ends with the job. Executors get the package from here, and the data source is known to it.
    """
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
        with _hushed(Path(folder) / "said"):
            spark = builder.getOrCreate()
        try:
            if not _is_one_process(options):
                spark.sparkContext.addPyFile(str(_packed(Path(folder))))
            spark.dataSource.register(DefaultSource)
            yield spark
        finally:
            spark.stop()


def settings(options: Namespace, folder: str) -> dict[str, str]:
    """
    Those of Spark, which has a folder for what it makes for a while.
    """
    tables = {"spark.sql.warehouse.dir": f"{folder}/tables"}  # which else is made where one is
    return _QUIET | (_sockets(folder) if _is_one_process(options) else {}) | tables | dict(options.conf)


def _sockets(folder: str) -> dict[str, str]:
    """
    Unix sockets between Java and Python, which are faster than those of the loopback interface. Spark removes none.
    """
    if len(os.fsencode(folder + _SOCKET_NAME)) > _SOCKET_PATH_MAX:
        return {}
    return {f"{_SOCKETS}.enabled": "true", f"{_SOCKETS}.dir": folder}


def _is_one_process(options: Namespace) -> bool:
    """
    Whether tasks run in the Java of the driver.
    """
    return bool(re.fullmatch(r"local(\[.*\])?", options.master))


def hush_errors() -> None:
    """
    Have errors told by us alone: Spark's Python logs each one with all its trace.
    """
    from pyspark.logger import PySparkLogger

    for name in _LOGS_OF_ERRORS:
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _hushed(said: Path) -> Iterator[None]:
    """
    What Java says on stderr goes to a file, from its start on; it is shown where it does not start.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with open(said, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except Exception as error:
        raise Refused(f"Spark does not start: {error}\n{said.read_text(errors='replace').strip()}") from error
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def failures_told(options: Namespace, run: Callable[[Namespace], Iterable[str]]) -> Iterator[str]:
    """
    The lines of a job. Where it cannot be done, the program ends with the reason and exit code 2.
    """
    try:
        yield from run(options)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        _end(options, f"{error.name} is not installed; `pip install kgateway[{extra}]` brings it")
    except Exception as error:
        words = _words(error)
        if words is None:
            raise
        _end(options, words)


def _end(options: Namespace, words: str) -> None:
    print(f"kgateway spark {options.kind}: {printable(words)}", file=sys.stderr)
    raise SystemExit(UNDONE)


def _words(error: Exception) -> str | None:
    """
    What is said of a failure; nothing where it is no failure of the job but a mistake in our program.
    """
    from kgateway.client.connection import Unanswered
    from kgateway.spark.failures import DataLost, Unreadable, Unwritten, WrongOption
    from kgateway.wire.errors import KafkaError
    from kgateway.wire.malformed import Malformed

    if isinstance(error, DataLost | KafkaError | Malformed | OSError | Refused | Unanswered | Unreadable | Unwritten):
        return str(error)
    if isinstance(error, WrongOption):
        return str(error)
    if type(error).__module__.startswith(("pyspark", "py4j")):
        return in_words(str(error))
    return None


def in_words(trace: str) -> str:
    """
    The reason in what Spark says of a failure: that of Python where there is one, else that of Java.
    """
    in_python = trace.rpartition("Traceback (most recent call last)")[2] if "Traceback" in trace else ""
    found: list[str] = [one["words"] for one in _TOLD_IN_PYTHON.finditer(in_python)]
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
    Our packages, for machines that do not have them.
    """
    path = folder / "kgateway.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in _PACKAGES:
            for file in sorted((_ROOT / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    packed.write(file, file.relative_to(_ROOT))
    return path
