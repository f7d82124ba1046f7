"""`ottla consume`: records of topics to stdout."""
