"""Python functions read as expressions, which Spark computes without calling Python."""
