"""What clients do while a cluster is in trouble, one kind of work a file."""
