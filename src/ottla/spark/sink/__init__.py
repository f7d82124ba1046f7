"""Rows into topics, each micro-batch in one transaction."""
