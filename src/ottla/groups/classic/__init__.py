"""Classic groups: the members agree among themselves who reads what, and the coordinator keeps their generations."""
