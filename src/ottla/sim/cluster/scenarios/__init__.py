"""What a run is made of, one scenario a file: which perils it may meet, and which work goes on meanwhile."""
