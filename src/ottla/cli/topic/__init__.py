"""`ottla topic`: topics, their partitions and their settings."""
