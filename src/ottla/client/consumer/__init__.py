"""Reading records: groups, positions, fetching, and what comes out as objects or as Arrow."""
