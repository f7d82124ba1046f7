"""Values of settings as Kafka spells them."""

from collections.abc import Iterable

from ottla.metadata.settings.definition import double_text


def setting_text(value: object) -> str | None:
    """Return a Python value in Kafka's spelling; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, Iterable):
        return ",".join(setting_text(each) or "" for each in value)
    return str(value)
