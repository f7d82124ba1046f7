"""A hundred brokers and a hundred thousand partitions, on the simulator's clock."""
