"""Membership of a consumer in its group, by either protocol."""
