"""What a simulation fails with."""


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Stuck(Violation):
    """Something that should have come about in time has not."""

    def __init__(self, text: str) -> None:
        super().__init__("progress", text)
