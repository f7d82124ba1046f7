"""Commands; prints, never decides."""
