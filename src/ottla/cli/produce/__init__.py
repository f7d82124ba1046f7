"""`ottla produce`: records from the command line, from files or from stdin into a topic."""
