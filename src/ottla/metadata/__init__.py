"""The cluster as an immutable image, folded from Kafka's metadata records, and the deltas between images."""
