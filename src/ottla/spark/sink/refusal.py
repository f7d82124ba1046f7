"""What the sink refuses to do, and says so."""

import logging

from ottla.client.errors import ClientError

LOGGER = logging.getLogger("ottla.spark")


class OptionError(ClientError):
    """An option of the sink cannot be what it is."""


class WrongColumns(ClientError):
    """The rows are not of a shape that can be written."""


class NotWritten(ClientError):
    """A micro-batch was not written: nothing of it is there."""


class PerhapsWritten(ClientError):
    """Nobody knows whether rows were written: all of them, or none."""
