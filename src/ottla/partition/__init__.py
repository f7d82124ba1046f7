"""A partition's replica on this node: one log, its leader, and who waits on it."""
