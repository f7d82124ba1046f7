"""Streams groups of KIP-1071: members bring a topology, the coordinator decides who runs which of its tasks."""
