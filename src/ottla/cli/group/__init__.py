"""`ottla group`: groups, their members and their offsets."""
