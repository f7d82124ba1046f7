"""Rules that only clients' settings have."""

from dataclasses import dataclass

from ottla.metadata.settings.definition import Value
from ottla.metadata.settings.error import InvalidValue, SettingError
from ottla.metadata.settings.rule import OffsetReset, OneOf, Rule


@dataclass(frozen=True, slots=True)
class ConsumerOffsetReset:
    """Where a consumer without a position begins: earliest, latest, none, or by_duration with an ISO 8601 duration."""

    def check(self, name: str, value: Value) -> None:
        """Refuse any other word, and a duration that is negative or not one."""
        if value == "none":
            return
        try:
            OffsetReset().check(name, value)
        except SettingError:
            reason = "must be earliest, latest, none, or by_duration: with an ISO 8601 duration"
            raise InvalidValue(name, value, reason, str(self)) from None

    def __str__(self) -> str:
        return "[latest, earliest, none, by_duration:PnDTnHnMn.nS]"


@dataclass(frozen=True, slots=True)
class QuietlyOneOf:
    """One of a few words in any case, of which Kafka's reference says only the words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """Refuse every other word."""
        OneOf(self.words, ignore_case=True).check(name, value)

    def __str__(self) -> str:
        return str(OneOf(self.words))


def ignores_case(rule: Rule) -> bool:
    """Whether a word may be written in any case."""
    return isinstance(rule, QuietlyOneOf) or (isinstance(rule, OneOf) and rule.ignore_case)
