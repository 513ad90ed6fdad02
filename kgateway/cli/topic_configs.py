"""
`kgateway topic-configs`: the configs of topics, written from their table.
"""

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import Column, table
from kgateway.cli.common.parser import page
from kgateway.cluster.config_rows import ConfigRow
from kgateway.cluster.config_table import TOPIC_CONFIGS as TABLE

_PAGE = """# Topic configs

`kgateway topic-configs --markdown` generates this page from the table of configs.

Topics have all the configs of Kafka 4.3. Set them when you create a topic, or later:

<!-- console
$ kgateway topics create orders
orders: created
-->

```console
$ kgateway configs set topic orders retention.ms=86400000
topic orders: retention.ms=86400000 set
```

[tools.md](tools.md#show-and-change-configs) describes this command. If a topic has no value of its own for a config,
the broker config in the table applies (see [compatibility.md](compatibility.md#broker-configs)); if that is not set
either, the default applies. Changes take effect at once. Configs that have no effect are accepted, so that tools and
programs written for Kafka work; the last column says why a config has no effect. Values that promise what the gateway
cannot do are refused.

This page is about the embedded log. The in-memory broker (`memory:`) has no segments and no files; it applies
retention, but not compaction. SeaweedMQ stores records in its own files ([seaweedmq.md](seaweedmq.md)), and does not
compact them either.

"""

_COLUMNS = (Column("CONFIG", 80), Column("DEFAULT", 80), Column("NOTE", 20))


def as_text() -> str:
    return "\n".join(
        table(_COLUMNS, [(row.name, row.default, "no effect" if row.without_effect else "") for row in TABLE.values()])
    )


def as_markdown() -> str:
    lines = ["| Config | Default | Meaning | Broker config | Effect |", "|---|---|---|---|---|"]
    return _PAGE + "\n".join([*lines, *map(_line, TABLE.values())])


def as_json() -> Json:
    return {"configs": [_fields(row) for row in TABLE.values()]}


def _fields(row: ConfigRow) -> Json:
    return {
        "config": row.name,
        "default": row.default,
        "meaning": row.meaning,
        "broker_config": row.synonym or None,
        "effect": _effect(row),
    }


TOPIC_CONFIGS = page(as_text, as_markdown, as_json, "kgateway topic-configs --json")


def _line(row: ConfigRow) -> str:
    cells = [f"`{row.name}`", f"`{row.default}`" if row.default else "none", row.meaning]
    return f"| {' | '.join([*cells, f'`{row.synonym}`' if row.synonym else 'none', _effect(row)])} |"


def _effect(row: ConfigRow) -> str:
    if row.only:
        return f"none: {row.without_effect}; only `{row.only}` is accepted"
    if row.without_effect:
        return f"none: {row.without_effect}"
    return "yes; set when the topic is created" if row.is_fixed else "yes"
