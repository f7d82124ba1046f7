"""The admin client without asyncio."""

from typing import Any

from ottla.client.admin.admin import Admin as AsyncAdmin
from ottla.client.blocking.face import Face, Noun


class Admin(Face, kind=AsyncAdmin):
    """Everything that can be asked of a cluster, by noun: `admin.topics.create("orders")`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        part = getattr(self._client, name)
        if not type(part).__module__.startswith("ottla.client.admin"):
            return part
        noun = Noun(self, part)
        setattr(self, name, noun)
        return noun
