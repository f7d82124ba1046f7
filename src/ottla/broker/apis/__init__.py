"""The APIs this broker serves: one file each, listed in the order of their keys."""
