"""
Runs the ```console blocks of a page as one session, from top to bottom, and compares what is printed.

A command begins with `$ `; the lines up to the next command are its output. A command goes on after a line that ends
with a backslash, and to the end of its here-document; such lines may begin with `> `, as in a terminal.

- All commands of a page run in one bash, so `cd`, variables, `. .venv/bin/activate`, `$?`, `%1` and `kill` work. It
  begins in an empty folder.
- A gateway runs in this folder on port 9092, unless a command of the page starts one. In truth the port is a free one.
- A command that lasts is left running as soon as the output that the page shows has appeared. It ends with `&`, or it
  is one of LASTING, and the commands after it are those of another terminal. `^C` in its output interrupts it.
- In the shown output `...` stands for anything in a line, and for any lines if it stands alone.
- Durations, clocks, sizes, rates, ids, the number of spaces and what bash says about jobs are not compared.
- A command without output has to succeed.

Comments of Markdown are for what readers need not see:

    <!-- console
    $ kgateway topics create orders
    ...
    -->

    <!-- file: producer.py -->

The first runs commands. The second writes the fenced block below it to a file, when the session gets there.

    python -m tests.docs.console [--update] PAGE...

prints where pages differ from what the commands print, or corrects the pages.
"""

import argparse
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300
APPEARANCE_S = 120  # of the output of a command that lasts
PORTS = ("9092", "9093", "8080")  # those that pages name; a session has free ones in their places
_COMMAND = r"(?:^|[|&;] *)(?:\w+=\S* )*(?:\S*/)?"
SERVES = re.compile(rf"{_COMMAND}(kgateway (seaweedmq dev|serve)|twistd\b[^|&;]* kgateway)\b")
LASTING = re.compile(
    rf"{_COMMAND}(kgateway (seaweedmq dev|serve)|twistd -n\b[^|&;]* kgateway)\b|^kgateway consume .*--follow"
)

# A shell cannot interrupt its commands where it began with an ignored SIGINT, as a job in the background does.
_BASH = """\
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("bash", ["bash", "--noprofile", "--norc", "-s"])
"""
_PYTHON = shlex.quote(sys.executable)
_PROGRAMS = {
    "kgateway": f"{_PYTHON} -m kgateway",
    "pytest": f"{_PYTHON} -m pytest",
    "python": _PYTHON,
    "python3": _PYTHON,
    "twistd": f"{_PYTHON} -c 'from twisted.scripts.twistd import run; run()'",
    "kafka-configs.sh": 'java -cp "$KAFKA_JARS/*" kafka.admin.ConfigCommand',  # see tox.ini
    "kafka-dump-log.sh": 'java -cp "$KAFKA_JARS/*" org.apache.kafka.tools.DumpLogSegments',
}

_PARTS = re.compile(
    r"^<!-- file: (?P<name>\S+) -->\n+```\w*\n(?P<content>.*?)^```$"
    r"|^<!-- console\n(?P<hidden>.*?)^-->$"
    r"|^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_READY = "...\n... kgateway ... is ready: ...\n...\n"
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_JOBS = re.compile(r"^\[\d+\][-+ ] .*\n", re.MULTILINE)
_CHANGING = [
    (re.compile(pattern), constant)
    for pattern, constant in (
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d{4}|\b)", "TIME"),
        (r"(?<=[v/])\d{4}(-\d\d){5}\b", "TIME"),  # of SeaweedMQ's folders and files
        (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "CLOCK"),
        (r'"timestamp": \d+', '"timestamp": TIME'),
        (r"\b[\d.]+ (bytes|[KMGT]iB)/s", "RATE"),
        (r"\b[\d,]+ records?/s", "RATE"),
        (r"\b[\d.,]+ (bytes|[KMGT]iB)\b", "SIZE"),
        (r"\b[\d.]+ ?m?s\b", "DURATION"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
        (r"(?<![\w+/-])(?=\S*[A-Z])(?=\S*[a-z])[\w+/-]{22}(?![\w+/-])", "UUID"),  # as Kafka writes them
        (r"\bepoch \d+", "epoch NUMBER"),
        (r"\bprocess \d+", "process PID"),
        (r"\bkgateway \d+\.\d+\S*", "kgateway VERSION"),
        (r"-{3,}", "---"),
        (r"[ \t]+", " "),
        (r" +$", ""),
    )
]


class Command(NamedTuple):
    """
    A command of a page, and the output below it.
    """

    text: str
    output: str
    line: int  # of the page, from 1
    span: tuple[int, int]  # of the output in the page


class Block(NamedTuple):
    """
    Commands that stand together.
    """

    commands: list[Command]
    visible: bool


class File(NamedTuple):
    """
    A file that a page shows.
    """

    name: str
    content: str


class Difference(NamedTuple):
    """
    What a command printed instead of the output on the page.
    """

    command: Command
    printed: str
    code: int | None

    def __str__(self) -> str:
        return (
            f"line {self.command.line}: $ {self.command.text}\nshown:\n{self.command.output}"
            f"printed (exit code {self.code}):\n{self.printed}"
        )


class Hung(Exception):
    """
    A command does not end. The message has what it printed.
    """


def parts(page: str) -> Iterator[Block | File]:
    """
    The console blocks and files of a page.
    """
    for part in _PARTS.finditer(page):
        if part["name"]:
            yield File(part["name"], part["content"])
        elif part["hidden"]:
            yield Block(_commands(page, *part.span("hidden")), visible=False)
        elif part["language"] == "console":
            yield Block(_commands(page, *part.span("text")), visible=True)


def blocks(page: str) -> list[Block]:
    return [part for part in parts(page) if isinstance(part, Block)]


def _commands(page: str, start: int, end: int) -> list[Command]:
    lines = page[start:end].splitlines(keepends=True)
    number, at, found = page.count("\n", 0, start) + 1, start, list[Command]()
    while lines:
        began, taken = number, [lines.pop(0)]
        if taken[0].startswith("$ "):
            text, rest = _command(taken[0][2:], lines)
            taken += lines[: len(lines) - len(rest)]
            lines = rest
        else:
            text = ""
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        output = at + sum(map(len, taken))
        at, number = output + sum(map(len, shown)), number + len(taken) + len(shown)
        if text:
            found.append(Command(text, "".join(shown), began, (output, at)))
    return found


def _command(line: str, rest: list[str]) -> tuple[str, list[str]]:
    """
    A whole command, and the lines below it.
    """
    text = [line]
    while text[-1].endswith("\\\n") and rest:
        text.append(rest[0].removeprefix("> "))
        rest = rest[1:]
    if here := _HERE_DOCUMENT.search("".join(text)):
        while rest and (len(text) == 1 or text[-1].strip() != here[2]):
            text.append(rest[0].removeprefix("> "))
            rest = rest[1:]
    return "".join(text).rstrip("\n"), rest


def matches(shown: str, printed: str) -> bool:
    """
    Whether this was printed, except for what differs each time.
    """
    lines = (_steady(line) for line in shown.rstrip("\n").split("\n"))
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in lines
    )
    told = "".join(f"{_steady(line)}\n" for line in _JOBS.sub("", printed).rstrip("\n").split("\n"))
    return re.fullmatch(pattern, told) is not None


def _steady(line: str) -> str:
    for pattern, constant in _CHANGING:
        line = pattern.sub(constant, line)
    return line


class Session:
    """
    A bash with `kgateway` and `python` on its PATH, in a folder. It and its jobs end with the context.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "session"
        self._outputs = folder / "outputs"
        self._programs = folder / "programs"
        self._addresses = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
        self._code = 0
        self._count = 0

    def __enter__(self) -> Self:
        for made in (self.folder, self._outputs, self._programs):
            made.mkdir()
        for name, command in _PROGRAMS.items():
            program = self._programs / name
            program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            program.chmod(0o755)
        self._bash = subprocess.Popen(
            [sys.executable, "-c", _BASH],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # with no terminal to take away from the tests
        )
        self._ask("set -m; echo")  # jobs have process groups of their own
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bash.kill()
        self._bash.wait()
        self._signal(signal.SIGTERM)
        _wait(lambda: not self._processes())
        self._signal(signal.SIGKILL)
        self._bash.communicate()  # jobs of several commands have its output open

    def _processes(self) -> list[int]:
        """
        All that bash has started. A daemon has a session of its own, but runs in a folder below this one.
        """
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError):
                if os.getsid(int(name)) == self._bash.pid or Path(f"/proc/{name}/cwd").readlink().is_relative_to(
                    self.folder.resolve()
                ):
                    found.append(int(name))
        return found

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._addresses['9092']}"

    def stand_in(self, shown: str, address: str) -> None:
        """
        An address that the page names is this one.
        """
        self._addresses[shown] = address

    def serve(self, options: str = "") -> None:
        """
        Start a gateway, as many pages presume.
        """
        code, log = self.start(f"kgateway serve {options} &", _READY)
        assert matches(_READY, log), (code, log)

    def run(self, text: str) -> tuple[int, str]:
        """
        The exit code, and the combined output and messages.
        """
        output = self._new_output()
        try:
            self._code = int(self._ask(self._redirected(text, output) + "; echo $?"))
        except Hung:
            raise Hung(f"{text}\n{self._read(output)}") from None
        return self._code, self._read(output)

    def start(self, text: str, shown: str = "") -> tuple[int | None, str]:
        """
        Leave a command running when this was printed, or it has ended. Interrupt it where `^C` is shown. The exit code
        is that of an interrupted command.
        """
        output = self._new_output()
        job = text if _in_background(text) else f"{{ {text}\n}} &"
        group = int(self._ask(self._redirected(job, output) + "; echo $!"))
        self._code = 0
        before, interrupted, _ = shown.partition("^C\n")
        if before:
            _wait(lambda: matches(before, self._read(output)) or not _is_alive(group))
        if not interrupted:
            return None, self._read(output)
        told = self._read(output)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGINT)
        self._code = int(self._ask("wait $!; echo $?"))
        return self._code, f"{told}^C\n{self._read(output)[len(told) :]}"

    def write(self, file: File) -> None:
        """
        Write a file relative to the present folder.
        """
        path = Path(self._ask("pwd").strip(), file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._with_real_addresses(file.content))

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KGATEWAY_")}
        port = self._addresses["9092"]
        return inherited | {
            "PATH": os.pathsep.join([str(self._programs), str(Path(sys.executable).parent), inherited["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "CHECKOUT": str(ROOT),
            "HOME": str(self.folder),
            "TZ": "UTC",
            "COLUMNS": "80",
            "KGATEWAY_LISTEN": f"tcp:{port}:interface=127.0.0.1",
            "KGATEWAY_BOOTSTRAP": self.bootstrap,
            "KGATEWAY_CONTROL_SOCKET": str(self.folder / "kgateway.sock"),
            "KGATEWAY_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        }

    def _new_output(self) -> Path:
        self._count += 1
        return self._outputs / str(self._count)

    def _redirected(self, text: str, output: Path) -> str:
        command = shlex.quote(self._with_real_addresses(text))
        return f"(exit {self._code}); eval {command} </dev/null >{shlex.quote(str(output))} 2>&1"

    def _with_real_addresses(self, text: str) -> str:
        for shown, real in self._addresses.items():
            text = re.sub(rf"\b{re.escape(shown)}\b", real, text)
        return text

    def _read(self, output: Path) -> str:
        printed = output.read_text(errors="replace")
        for shown, real in self._addresses.items():
            printed = re.sub(rf"\b{re.escape(real)}\b", shown, printed)
        return printed

    def _ask(self, script: str) -> str:
        """
        The line that this prints outside of the redirected commands.
        """
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.write(f"{script}\n".encode())
        self._bash.stdin.flush()
        if not select.select([self._bash.stdout], [], [], PATIENCE_S)[0]:
            self._bash.kill()
            raise Hung(script)
        return self._bash.stdout.readline().decode()


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + APPEARANCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _free_ports(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [str(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _in_background(text: str) -> bool:
    return text.rstrip().endswith("&") and not text.rstrip().endswith("&&")


def starts_a_gateway(page: str) -> bool:
    return any(SERVES.search(command.text) for block in blocks(page) for command in block.commands)


def differences(
    page: str,
    folder: Path,
    is_run: Callable[[Command], bool] = lambda command: True,
    prepare: Callable[[Session], AbstractContextManager[object]] | None = None,
) -> list[Difference]:
    """
    Run a page in an empty folder. A block whose command is not to be run is left out as a whole. What the page presumes
    may be prepared, its gateway included.
    """
    found = []
    with Session(folder) as session, prepare(session) if prepare else nullcontext():
        if not prepare and not starts_a_gateway(page):
            session.serve()
        for part in parts(page):
            if isinstance(part, File):
                session.write(part)
            elif all(map(is_run, part.commands)):
                found += [told for command in part.commands if (told := _difference(session, command))]
    return found


def _difference(session: Session, command: Command) -> Difference | None:
    code: int | None
    if _in_background(command.text) or LASTING.search(command.text):
        code, printed = session.start(command.text, command.output)
    else:
        code, printed = session.run(command.text)
    if matches(command.output, printed) and (command.output.strip() or not code):
        return None
    return Difference(command, printed, code)


def corrected(page: str, found: list[Difference]) -> str:
    """
    The page with what was printed.
    """
    for difference in reversed(found):
        start, end = difference.command.span
        printed = difference.printed
        page = page[:start] + printed + ("" if printed.endswith("\n") or not printed else "\n") + page[end:]
    return page


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.console")
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--update", action="store_true", help="correct the pages")
    arguments = parser.parse_args()
    code = 0
    for path in arguments.pages:
        page = path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            found = differences(page, Path(folder))
        for difference in found:
            print(f"{path}, {difference}")
        if found and arguments.update:
            path.write_text(corrected(page, found))
        code |= bool(found)
    return code


if __name__ == "__main__":
    sys.exit(main())
