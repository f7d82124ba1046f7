"""Measurements of Ottla beside its peers."""
