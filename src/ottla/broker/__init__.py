"""The broker: an API table, one handler a file, and the short way from a frame to a reply."""
