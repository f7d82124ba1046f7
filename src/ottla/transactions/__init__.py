"""Transactions: which producer has which one open, over which partitions, and how it ends. Pure machines."""
