"""Framed requests and replies over a byte stream."""
