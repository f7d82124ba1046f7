"""Records as text: what `consume` prints and `produce` reads."""
