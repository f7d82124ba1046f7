"""Groups of consumers: who is in, who reads what, and how far each group has come. Pure machines."""
