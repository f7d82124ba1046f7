"""Histories: what clients asked of a cluster and were told, and whether a log that keeps its word can explain it."""
