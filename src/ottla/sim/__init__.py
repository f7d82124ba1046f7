"""The simulated world: a virtual clock, a network and disks that fail by a seed, and checkers that watch."""
