"""What the broker remembers of one connection."""


class Session:
    """A client as it introduced itself."""

    __slots__ = ("client_id", "listener", "software_name", "software_version")

    def __init__(self, listener: str) -> None:
        self.listener = listener
        self.client_id = bytearray()
        self.software_name = ""
        self.software_version = ""
