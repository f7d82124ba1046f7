"""The active controller: a pure machine that turns commands into metadata records."""
