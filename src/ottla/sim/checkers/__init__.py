"""Checkers: one invariant a file. Each is told what happens, and raises a Violation when its law is broken."""
