"""
`kgateway completion`: what a shell needs to complete command lines, which it does by running `kgateway` with the line
in its environment. argcomplete speaks with the shells; names of topics and groups are asked of the cluster.
"""

import os
import re
from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argcomplete import autocomplete
from argcomplete.completers import FilesCompleter, SuppressCompleter
from argcomplete.shell_integration import shellcode

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.parser import Command, Parser, example_text

if TYPE_CHECKING:
    from kgateway.client.cluster import Cluster

_SHELLS = ("bash", "zsh", "fish")
_SETUP = """\
add one of these lines to the startup file of your shell:
  ~/.bashrc                   eval "$(kgateway completion bash)"
  ~/.zshrc, after compinit    eval "$(kgateway completion zsh)"
  ~/.config/fish/config.fish  kgateway completion fish | source"""
_PATIENCE_S = 1.0  # for the cluster: a shell waits meanwhile
_FILES = {"FILE", "FOLDER", "PATH"}  # or what is a Path when it is parsed
_WORDS = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")

Completer = Callable[..., Iterable[str]]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=f"one of {', '.join(_SHELLS)}")
    parser.epilog = f"{_SETUP}\n\n{example_text('kgateway completion bash')}"


def _run(options: Namespace) -> list[str]:
    shell = "fish" if options.shell == "fish" else "bash"  # argcomplete's script for bash is one for zsh too
    return [shellcode(["kgateway"], use_defaults=False, shell=shell).strip()]


COMPLETION = Command(_add_arguments, _run, has_json=False)


def words_before_cursor() -> list[str]:
    """
    The words of the command line that a shell completes, without the name of the program.
    """
    return os.environ["COMP_LINE"].split()[1:]


def complete(parser: ArgumentParser) -> None:
    """
    Tell the shell how the word at the cursor may end, and exit.
    """
    for action in _actions(parser):
        completer = _completer(action)
        if completer:
            action.completer = completer  # type: ignore[attr-defined]  # where argcomplete looks for it
    autocomplete(parser, always_complete_options=False, default_completer=SuppressCompleter())


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
        elif not action.choices:
            yield action


def _completer(action: Action) -> Completer | None:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if _WORDS.fullmatch(metavar):
        return lambda **context: metavar.split("|")
    if metavar in _FILES or action.type is Path:
        return _files
    return _COMPLETERS.get(metavar)


def _files(prefix: str, action: Action, parsed_args: Namespace, **context: object) -> list[str]:
    """
    Files and folders; none for `kgateway produce` while its topic is missing, because that comes first.
    """
    given = vars(parsed_args)
    if action.dest == "files" and not (given.get("topic") or given.get("named_topic")):
        return []
    return [*FilesCompleter()(prefix)]


def _topics(parsed_args: Namespace, **context: object) -> list[str]:
    from kgateway.cli.common.topic_names import all_topics

    def ask(cluster: "Cluster") -> list[str]:
        return [topic.name for topic in all_topics(cluster).values() if not topic.is_internal]

    return _names(parsed_args, ask)


def _groups(parsed_args: Namespace, **context: object) -> list[str]:
    from kgateway.client.groups import list_groups

    return _names(parsed_args, lambda cluster: [one.group_id for one in list_groups(cluster)])


def _clusters(**context: object) -> list[str]:
    from kgateway.cli.common.cluster_profiles import read_profiles

    with suppress(UsageError):
        return [*read_profiles().clusters]
    return []


def _resources(parsed_args: Namespace, **context: object) -> list[str]:
    """
    What `kgateway configs` can name.
    """
    named = {"topic": _topics, "group": _groups}.get(vars(parsed_args).get("of", ""))
    return named(parsed_args) if named else []


def _names(options: Namespace, ask: "Callable[[Cluster], list[str]]") -> list[str]:
    """
    The names that the cluster has; none if it does not answer, because nobody reads an error while completing.
    """
    from kgateway.cli.common.cluster import addresses
    from kgateway.cli.common.cluster_profiles import target
    from kgateway.client.cluster import Cluster

    with suppress(Exception):
        given = vars(options).get("bootstrap") or target(vars(options).get("cluster")).bootstrap
        with Cluster(addresses(given) if isinstance(given, str) else given, _PATIENCE_S) as cluster:
            return ask(cluster)
    return []


def _configs(parsed_args: Namespace, **context: object) -> list[str]:
    """
    The names of configs that a gateway knows, which are Kafka's.
    """
    from kgateway.cluster.broker_config import BROKER_CONFIGS
    from kgateway.cluster.config_table import TOPIC_CONFIGS
    from kgateway.cluster.group_config import GROUP_CONFIGS

    tables = {"topic": TOPIC_CONFIGS, "broker": BROKER_CONFIGS, "group": GROUP_CONFIGS}
    return [*tables.get(vars(parsed_args).get("of", "topic"), ())]


def _configs_to_set(**context: Any) -> list[str]:
    return [f"{name}=" for name in _configs(**context)]


_COMPLETERS: Mapping[str, Completer] = {
    "TOPIC": _topics,
    "TOPIC[:N,N]": _topics,
    "GROUP": _groups,
    "NAME": _resources,
    "CLUSTER": _clusters,
    "CONFIG": _configs,
    "CONFIG=VALUE": _configs_to_set,
}
