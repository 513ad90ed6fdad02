"""
The log level of this process, which can be changed while it runs.

twistd makes the observers that write the log, and lets all levels through. When a gateway starts, they exist already:
each is replaced in Twisted's publisher by a filter that passes events on to it, and restored when the gateway stops.
"""

from twisted.logger import FilteringLogObserver, ILogObserver, LogLevel, LogLevelFilterPredicate, LogPublisher

_CHATTY = "twisted.web.client"  # at the level info it logs each connection that it opens and closes
LEVELS = tuple(level.name for level in LogLevel.iterconstants())  # debug first, critical last


class LogLevels:
    """
    The level below which nothing is logged.
    """

    def __init__(self, publisher: LogPublisher, level: str = "info") -> None:
        self._publisher = publisher
        self._predicate = LogLevelFilterPredicate()
        self.set(level)
        self._filtered: list[tuple[ILogObserver, ILogObserver]] = []  # an observer, and the filter before it

    @property
    def level(self) -> str:
        return str(self._predicate.logLevelForNamespace("").name)

    def set(self, level: str) -> None:
        """
        Log this level, one of `LEVELS`, and those above it from now on.
        """
        lowest = LogLevel.levelWithName(level)
        self._predicate.setLogLevelForNamespace("", lowest)
        is_all = lowest is LogLevel.debug
        self._predicate.setLogLevelForNamespace(_CHATTY, lowest if is_all else max(lowest, LogLevel.warn))

    def start(self) -> None:
        # Twisted has no public name for them: logging begins only once, and twistd has begun it.
        for observer in tuple(self._publisher._observers):
            self._filtered.append((observer, FilteringLogObserver(observer, [self._predicate])))
        for observer, filtering in self._filtered:
            self._publisher.removeObserver(observer)
            self._publisher.addObserver(filtering)

    def stop(self) -> None:
        for observer, filtering in self._filtered:
            self._publisher.removeObserver(filtering)
            self._publisher.addObserver(observer)
        self._filtered.clear()
