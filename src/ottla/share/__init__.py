"""Share groups' records in flight: who holds which, how often it was tried, and what is done with it. Pure machines."""
