"""Cutting a value into its pieces, as Kafka's brokers do."""


def pieces(text: str, separator: str = ",") -> list[str]:
    """What stands between the separators. Empty pieces at the end do not count, but an empty text is one."""
    if not text:
        return [""]
    found = text.split(separator)
    while found and not found[-1]:
        found.pop()
    return found
