"""Fetch (1), on the listener of a controller: followers read the metadata log, and say by that how far they are."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

API = Api(FetchRequest, FetchResponse, ask_quorum)
