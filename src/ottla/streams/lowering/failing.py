"""How a Column fails: in the words in which a function fails that Python calls."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.plan.function import Function


@dataclass(frozen=True, slots=True)
class Failing:
    """What is said of a failure besides its reason: the operator, and where the user's function stands."""

    operator: str
    place: str
    has_record: bool = True  # whether the frame has a record to name

    def because(self, *reason: str | Column) -> Column:
        """Return a Column that fails with that reason, naming the record; a null in it reads None."""
        parts = [
            F.lit(each) if isinstance(each, str) else F.coalesce(each.cast("string"), F.lit("None"))
            for each in reason
        ]
        if self.has_record:
            parts += [F.lit(", on the record "), record()]
        return F.raise_error(F.concat(F.lit(f"{self.operator}: "), *parts, F.lit(f" ({self.place})")))

    def misfit(self, found: Column, bits: int, path: str = "") -> Column:
        """Return a Column that fails because a whole number is too large for its type; `path` leads to its field."""
        return self.because(f"returned the wrong thing: {path}", found, f" does not fit into {bits} bits")


def record() -> Column:
    """Return the name of the record, as errors have it."""
    return F.concat_ws("", F.col("topic"), F.lit("-"), F.col("partition"), F.lit("@"), F.col("offset"))


def failing(function: Function, operator: str) -> Failing:
    """Return how the Column of a function fails."""
    return Failing(operator, function.place)
