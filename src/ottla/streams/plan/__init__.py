"""The plan of a topology: frozen operators, which know nothing of Spark."""
