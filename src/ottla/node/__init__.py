"""The composition root: settings, then the world, then the parts."""
