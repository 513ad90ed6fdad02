"""
Clusters with names, which `kgateway.toml` gives them in the current folder and in that of the user:

    cluster = "dev"  # the one that is used unless another is named

    [clusters.dev]
    bootstrap = "localhost:9092"

    [clusters.staging]
    bootstrap = ["kafka1.example.org:9092", "kafka2.example.org:9092"]

The same file may have the settings of a gateway, which reads its own part and no clusters.
"""

import os
import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.values import DEFAULT_BOOTSTRAP
from kgateway.config.sources import BOOTSTRAP, CLUSTER, CLUSTERS_KEY, DEFAULT_CLUSTER_KEY

FILE = "kgateway.toml"
DEFAULT = "the default"  # the source of an address that is not configured
_BOOTSTRAP_KEY = "bootstrap"
_KEYS = (_BOOTSTRAP_KEY,)  # of a cluster


class Profile(NamedTuple):
    """
    A cluster that has a name.
    """

    name: str
    bootstrap: str
    file: Path


class Target(NamedTuple):
    """
    The servers that a command asks, and what names them.
    """

    bootstrap: str
    source: str
    cluster: str | None = None


class Profiles(NamedTuple):
    clusters: Mapping[str, Profile]
    default: str | None = None
    default_file: Path = Path(FILE)

    def of(self, name: str, place: str) -> Target:
        """
        The cluster of this name; UsageError if there is none.
        """
        if name not in self.clusters:
            known = f"; there are {', '.join(self.clusters)}" if self.clusters else f"; no {FILE} has any"
            raise UsageError(f"{place}: there is no cluster {name}{_meant(name, self.clusters) or known}")
        profile = self.clusters[name]
        return Target(profile.bootstrap, f"cluster {name} of {profile.file}", name)


def target(cluster: str | None = None) -> Target:
    """
    Where commands connect if --bootstrap is not given.
    """
    bootstrap, named = os.environ.get(BOOTSTRAP), os.environ.get(CLUSTER)
    if cluster:
        return read_profiles().of(cluster, "--cluster")
    if bootstrap and named:
        raise UsageError(f"{BOOTSTRAP} and {CLUSTER} are both set: unset one, or use --bootstrap or --cluster")
    if bootstrap:
        return Target(bootstrap, f"${BOOTSTRAP}")
    profiles = read_profiles()
    if named:
        return profiles.of(named, f"${CLUSTER}")
    if profiles.default is not None:
        return profiles.of(profiles.default, f"{DEFAULT_CLUSTER_KEY} in {profiles.default_file}")
    return Target(DEFAULT_BOOTSTRAP, DEFAULT)


def files() -> list[Path]:
    """
    Where clusters may have names; the first file that knows a name decides.
    """
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return [Path(FILE), Path(config, "kgateway", FILE)]


def read_profiles() -> Profiles:
    clusters: dict[str, Profile] = {}
    default, default_file = None, Path(FILE)
    for file in files():
        found = _read(file)
        if default is None and DEFAULT_CLUSTER_KEY in found:
            default, default_file = found[DEFAULT_CLUSTER_KEY], file
        for name, table in found.get(CLUSTERS_KEY, {}).items():
            clusters.setdefault(name, _profile(name, table, file))
    return Profiles(clusters, default, default_file)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not even UTF-8
        raise UsageError(f"{file} is not TOML: {error}") from error
    _check(found, file)
    return found


def _check(found: Mapping[str, Any], file: Path) -> None:
    """
    Refuse a misspelt key, which would have no effect.
    """
    from kgateway.config.settings import OPTIONS  # of a gateway

    for key in found:
        _refuse_unknown(key, [DEFAULT_CLUSTER_KEY, CLUSTERS_KEY, *OPTIONS], str(file))
    default, clusters = found.get(DEFAULT_CLUSTER_KEY, ""), found.get(CLUSTERS_KEY, {})
    if isinstance(default, dict):
        name = next(iter(default), "NAME")
        raise UsageError(f"{file} has [{DEFAULT_CLUSTER_KEY}.{name}]; did you mean [{CLUSTERS_KEY}.{name}]?")
    if not isinstance(default, str):
        raise UsageError(f"{DEFAULT_CLUSTER_KEY} in {file} must be the name of a cluster")
    if not isinstance(clusters, dict) or not all(isinstance(table, dict) for table in clusters.values()):
        raise UsageError(f"{CLUSTERS_KEY} in {file} must be tables, such as [clusters.dev]")


def _profile(name: str, table: Mapping[str, Any], file: Path) -> Profile:
    place = f"[{CLUSTERS_KEY}.{name}] in {file}"
    for key in table:
        _refuse_unknown(key, _KEYS, place)
    bootstrap = table.get(_BOOTSTRAP_KEY)
    servers: list[Any] = bootstrap if isinstance(bootstrap, list) else [bootstrap]
    if not servers or not all(isinstance(server, str) and server for server in servers):
        raise UsageError(f'{place} needs bootstrap = "HOST:PORT", or an array of servers')
    for server in servers:
        _check_address(server, place)
    return Profile(name, ",".join(servers), file)


def _check_address(text: str, place: str) -> None:
    from kgateway.client.connection import Address  # with a wire codec, which not every command needs

    for part in text.split(","):
        try:
            Address.parse(part)
        except ValueError as error:
            raise UsageError(f"{place} has a {_BOOTSTRAP_KEY} that cannot be used: {error}") from None


def _refuse_unknown(key: str, known: Collection[str], place: str) -> None:
    if key not in known:
        raise UsageError(f"{place} has {key}, which has no meaning there{_meant(key, known)}")


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
