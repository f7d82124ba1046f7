"""Reads topics into Spark: which partitions, from where to where, in how many tasks, as Arrow."""
