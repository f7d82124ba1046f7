"""`ottla services`: the HTTP services, in a process of their own."""
