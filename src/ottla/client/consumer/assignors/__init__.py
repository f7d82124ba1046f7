"""Who reads which partition, as the members of a classic group work it out among themselves."""
