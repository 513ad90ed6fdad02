"""
`kgateway topic-configs`: the configs of topics, written from their table.
"""

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import page
from kgateway.cluster.config_rows import ConfigRow
from kgateway.cluster.config_table import TOPIC_CONFIGS as TABLE

_PAGE = """# Configs of topics

Written by `kgateway topic-configs --markdown` from the table of configs; a test keeps this page and the table together.

Every config that a topic of Kafka 4.3 has is known. It is set when a topic is made, or later:

```
kgateway configs set topic orders retention.ms=86400000
```

[tools.md](tools.md) tells more of that. Where a topic does not set a config, the broker's behind it holds
([compatibility.md](compatibility.md) says how those are set), or the default. What is set has its effect at once.
Configs that change nothing here are taken all the same, so that tools and programs written for Kafka work; the last
column says why they change nothing. What would be a false promise is refused.

So it is with the embedded log. The broker in memory has no segments and no files, keeps records as long as retention
says, and compacts nothing; SeaweedMQ has files of its own ([seaweedmq.md](seaweedmq.md)), and compacts nothing either.

"""


def as_text() -> str:
    return "\n".join(
        f"{row.name:<40} {row.default}{' (no effect)' * bool(row.without_effect)}" for row in TABLE.values()
    )


def as_markdown() -> str:
    lines = ["| Config | Default | What it is | The broker's behind it | Effect |", "|---|---|---|---|---|"]
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


TOPIC_CONFIGS = page(as_text, as_markdown, as_json)


def _line(row: ConfigRow) -> str:
    cells = [f"`{row.name}`", f"`{row.default}`" if row.default else "none", row.meaning]
    return f"| {' | '.join([*cells, f'`{row.synonym}`' if row.synonym else 'none', _effect(row)])} |"


def _effect(row: ConfigRow) -> str:
    if row.only:
        return f"none: {row.without_effect}; only `{row.only}` is taken"
    if row.without_effect:
        return f"none: {row.without_effect}"
    return "yes; decided when the topic is made" if row.is_fixed else "yes"
