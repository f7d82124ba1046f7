"""Assignors: which member of a group shall read which partition. Pure functions over plain data."""
