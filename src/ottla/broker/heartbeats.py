"""What heartbeats of the newer groups cost, of which some say a lot."""

# Of a turn of the loop, for each name that a member brings: it is looked up, counted, sorted and written. Whoever
# brings some hundreds takes turns with others.
NAME_COST = 1_600
# Beyond it a heartbeat is served as a long request. Honest ones with many partitions must not wait behind such.
LONG_BYTES = 64 << 10
