"""What the source refuses to do, and says so: options that cannot be, and records that are gone."""

import logging

from ottla.client.errors import ClientError

LOGGER = logging.getLogger("ottla.spark")

_MAY_GO_ON = "to go on with what is there, set failOnDataLoss to false"


class OptionError(ClientError):
    """An option of the source cannot be what it is."""


class NothingThere(ClientError):
    """A topic or a partition that was asked for does not exist."""


class DataLost(ClientError):
    """Records that were to be read are not there any more, and nobody has read them."""


class GroupRefused(ClientError):
    """Offsets cannot be committed to the group."""


class Untimely(ClientError):
    """A record's time is beyond what Spark's timestamps can say."""


class Losses:
    """What to do about records that are gone: fail, or say so and go on, as `failOnDataLoss` has it."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def report(self, message: str, *, hint: str = "") -> None:
        """Raise DataLost, or write a warning."""
        if self.fails:
            raise DataLost(message, hint=f"{hint}; {_MAY_GO_ON}" if hint else _MAY_GO_ON)
        LOGGER.warning("%s; going on, since failOnDataLoss is false", message)
