"""
`kgateway options`: the settings of the server, written from their table.
"""

import json
import sys
from textwrap import wrap
from typing import Any

from kgateway.cli.common.colours import Colour, coloured
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import page
from kgateway.config.settings import OPTIONS as SETTINGS
from kgateway.config.sources import Option

_PAGE = """# Configuration

`kgateway options --markdown` generates this page from the table of settings.

You can specify each setting in three places, under the same name. For example, set `num_partitions` with

1. `--num-partitions 8` or `--num-partitions=8` on the command line,
2. `KGATEWAY_NUM_PARTITIONS=8` in the environment, or
3. `num_partitions = 8` in a TOML file, which `--config` or `KGATEWAY_CONFIG` names.

The first of these places that has a value wins; if none has one, the default below applies. A setting that may be
repeated is a repeated option on the command line, an array in TOML, and a whitespace-separated list in the environment.
In TOML, a single value needs no array. Lists from different places are not merged: the first place that has one wins.

`kgateway options --toml > gateway.toml` writes a TOML file with all settings and their defaults, as a starting point.

The file may also define clusters for the command-line tools, in `cluster` and `[clusters.NAME]`. A gateway ignores
them; [tools.md](tools.md#choose-the-cluster) describes them.

If a setting has an unknown name or an invalid value, the gateway does not start. The message says where the mistake is,
what is allowed, and which name may have been meant.

Sizes are in bytes unless they have a unit: `KiB`, `MiB`, `GiB` or `TiB`. Durations are in milliseconds unless they have
a unit: `ms`, `s`, `min` or `m`, `h`, or `d`. In TOML, write a number as an integer; a size or duration with a
unit as a string; and yes or no as `true` or `false`. Elsewhere, `on`, `off`, `true`, `false`, `1` and `0` also work for
yes and no. Paths are relative to the folder in which the gateway runs, except `--config`, which is relative to the
folder in which the gateway was started.

## Examples

Options of `twistd` itself, such as `-n`, come before the word `kgateway`. Save this file as `gateway.toml`, and start
a gateway with it:

<!-- file: gateway.toml -->
```toml
listen = ["tcp:9092:interface=0.0.0.0"]
advertise = ["gateway.example.org:9092"]
max_request_bytes = "64MiB"
max_idle_ms = "30min"
num_partitions = 8
auto_create_topics = false
```

<!-- console
$ unset KGATEWAY_LISTEN
-->

```console
$ twistd -n kgateway --config gateway.toml --log-level debug
...
2026-11-27T12:00:00+0000 kgateway 0.1.0 is ready: plaintext on 0.0.0.0:9092; data in kgateway-data (0 topics)
```

You can use the same settings in the environment, for example that of a container:

<!-- console
$ kill $(cat twistd.pid); wait
-->

```console
$ export KGATEWAY_LISTEN=tcp:9092:interface=0.0.0.0
$ export KGATEWAY_ADVERTISE=gateway.example.org:9092
$ export KGATEWAY_MAX_REQUEST_BYTES=64MiB
$ export KGATEWAY_MAX_IDLE_MS=30min
$ export KGATEWAY_NUM_PARTITIONS=8
$ export KGATEWAY_AUTO_CREATE_TOPICS=no
$ twistd -n kgateway --log-level debug
...
2026-11-27T12:00:00+0000 kgateway 0.1.0 is ready: plaintext on 0.0.0.0:9092; data in kgateway-data (0 topics)
```

If there is more than one listener, each needs a name, and can advertise an address of its own. By default, it
advertises the address to which the client connected, which is right unless there is a proxy or a port mapping in
between.

<!-- console
$ kill $(cat twistd.pid); wait
$ unset KGATEWAY_ADVERTISE
-->

```console
$ twistd -n kgateway \\
    --listen internal=tcp:9092:interface=127.0.0.1 \\
    --listen external=tcp:9093 --advertise external=kafka.example.org:443
...
2026-11-27T12:00:00+0000 kgateway 0.1.0 is ready: internal on 127.0.0.1:9092, external on 0.0.0.0:9093; ...
```

In an endpoint string, escape colons inside an address: `tcp6:9092:interface=\\:\\:1`. Put an advertised IPv6 address in
brackets: `[2001:db8::5]:9092`.

## Settings

"Kafka's name" is the broker config with the same meaning.

"""

_FILE = """\
# Settings of a gateway: kgateway serve --config FILE
#
# Each setting has its default here. To change one, remove the # in front of its name.
# Sizes are bytes, or have a unit: KiB, MiB, GiB, TiB.
# Durations are milliseconds, or have a unit: ms, s, min or m, h, d.

"""
_TEXT_ROW = "{:<44} {}"
_FILE_COLUMNS = 100
_NO_DEFAULT = "FILE"


def as_text() -> str:
    """
    A table that fits 80 columns, because the longest options have short defaults, which are not aligned.
    """
    heading = coloured(_TEXT_ROW.format("OPTION", "DEFAULT"), Colour.BOLD, sys.stdout)
    rows = [_TEXT_ROW.format(f"{row.flag} {row.kind.metavar}", row.shown_default).rstrip() for row in SETTINGS.values()]
    return "\n".join([heading, *rows, "", "`kgateway options --toml` also prints what each setting means."])


def as_markdown() -> str:
    lines = ["| Setting | Default | Meaning | Allowed values | Kafka's name |", "|---|---|---|---|---|"]
    return _PAGE + "\n".join([*lines, *map(_line, SETTINGS.values())])


def as_json() -> Json:
    return {"options": [_fields(row) for row in SETTINGS.values()]}


def as_toml() -> str:
    """
    A file of settings in which each setting is there, commented out, with its default.
    """
    rows = [row for row in SETTINGS.values() if row.name != "config"]  # a file cannot name another one
    return _FILE + "\n\n".join(map(_toml, rows))


OPTIONS = page(as_text, as_markdown, as_json, "kgateway options --toml > gateway.toml", as_toml)


def _fields(row: Option) -> Json:
    return {
        "option": row.name,
        "default": row.shown_default or None,
        "meaning": row.meaning,
        "allowed": row.allowed,
        "kafka": row.kafka or None,
    }


def _toml(row: Option) -> str:
    facts = [f"Allowed: {row.allowed}."]
    facts += [] if row.repeats or row.default is not None else ["Default: none."]
    facts += [f"Kafka: {row.kafka}."] if row.kafka else []
    values = row.default if row.repeats else [_NO_DEFAULT if row.default is None else row.default]
    texts = [_toml_value(row, value) for value in values]
    comment = [*_commented(f"{row.meaning[0].upper()}{row.meaning[1:]}."), *_commented(" ".join(facts))]
    value = f"[{', '.join(texts)}]" if row.repeats else texts[0]
    return "\n".join([*comment, f"#{row.name} = {value}"])


def _toml_value(row: Option, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = row.kind.show(value)
    return text if int in row.kind.toml and text.isdecimal() else json.dumps(text, ensure_ascii=False)


def _commented(text: str) -> list[str]:
    return wrap(text, _FILE_COLUMNS, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _line(row: Option) -> str:
    cells = [_code(row.name), _code(row.shown_default), row.meaning, row.allowed, _code(row.kafka)]
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else "none"
