"""What stops a replay: a metadata log that says something impossible, or something we do not know."""


class MetadataError(Exception):
    """The metadata log cannot be understood; going on would mean inventing state, so the node stops here."""
