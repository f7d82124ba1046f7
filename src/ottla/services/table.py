"""Which services there are, and where each listens unless told otherwise."""

from ottla.services.index.application import build_index
from ottla.services.service import Service

SERVICES: tuple[Service, ...] = (
    Service("index", "What there is", 8080, build_index),
)  # fmt: skip
