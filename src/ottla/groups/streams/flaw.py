"""What is wrong with the topics of a topology, which whoever runs the cluster can mend."""

from ottla.groups.streams.statuses import StatusCode


class Flaw(Exception):
    """A hindrance, with what is told of it."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
