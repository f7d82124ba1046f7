"""What must not be found in a history."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One finding, by the name that Jepsen's reports use."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"
