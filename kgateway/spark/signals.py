"""
SIGINT and SIGTERM while Spark runs.

PySpark's handler of SIGINT asks Java to cancel all jobs. It asks on the connection whose call it has just interrupted,
which fails with tracebacks. The handler here only raises: Spark is stopped afterwards, which cancels its jobs as well.
"""

import logging
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PY4J = "py4j"


class Interrupted(KeyboardInterrupt):
    """
    A signal arrived. Py4J closes the connection of a call that a KeyboardInterrupt ends.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number  # as shells know it


@contextmanager
def running(start: Callable[[], "SparkSession"]) -> Iterator["SparkSession"]:
    """
    Spark, which is stopped at the end. The first signal raises Interrupted, as soon as Spark has started; later
    ones are ignored, so that everything else can end, too.
    """
    from py4j.protocol import Py4JError

    came: list[Interrupted] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(Interrupted(number))

    def interrupt(number: int, frame: FrameType | None) -> None:
        _handle(signal.SIG_IGN)
        came.append(Interrupted(number))
        raise came[0]

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        with _hushed_py4j():
            _handle(note)  # Java that loses its parent as it starts prints tracebacks
            spark = start()
            _handle(signal.SIG_IGN if came else interrupt)  # also in place of PySpark's
            try:
                if came:
                    raise came[0]
                yield spark
            finally:
                _handle(signal.SIG_IGN)
                # Java is gone, too, where a whole group of processes gets the signal.
                with warnings.catch_warnings(action="ignore"), suppress(OSError, Py4JError):
                    spark.stop()
    except Exception as error:
        interrupt_before = came[0] if came else _interrupt_before(error)
        if interrupt_before:  # what fails on the way out of the job does not matter
            raise interrupt_before from None
        raise
    finally:
        if not came:
            for number, handler in before.items():
                signal.signal(number, handler)


def _interrupt_before(error: BaseException) -> KeyboardInterrupt | None:
    """
    The interrupt that was being handled when this error came, by any handler of SIGINT.
    """
    context = error.__context__
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context


def _handle(handler: Any) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


@contextmanager
def _hushed_py4j() -> Iterator[None]:
    """
    Py4J logs the traceback of every call that fails, with loggers of its own and with the root logger. It raises the
    error as well.
    """
    root, own = logging.getLogger(), logging.getLogger(_PY4J)
    level = own.level
    own.setLevel(logging.CRITICAL)
    root.addFilter(_is_not_of_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_py4j)
        own.setLevel(level)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return _PY4J not in record.pathname
