"""Apache Kafka's own tables of settings, and our rows as they print them."""

import csv
from pathlib import Path

from ottla.metadata.settings.definition import Setting, Type


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of one table."""
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def shown_default(setting: Setting) -> str:
    """A default as Kafka prints it."""
    if setting.required:
        return "(required)"
    text = setting.text(setting.default_value)
    if text is None:
        return "null"
    return f"[{', '.join(text.split(','))}]" if setting.type is Type.LIST else text
