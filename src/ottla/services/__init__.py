"""The process of the HTTP services: which there are, how each is built, and how they start and stop together."""
