"""Whether PySpark is there, asked where something needs it: what does not can be used without."""

from importlib.util import find_spec


def require_pyspark(who: str) -> None:
    """Raise an ImportError that says what to install, unless PySpark is there."""
    if find_spec("pyspark") is None:
        raise ImportError(
            f"{who} needs PySpark, which is not installed\nhint: pip install 'ottla[spark]'", name="pyspark"
        )
