"""Kafka's log: segments, indexes, producer state, and the directories that hold them, file for file."""
