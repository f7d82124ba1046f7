"""Whole clusters in one process: real nodes and real clients on a simulated network, on disks that forget."""
