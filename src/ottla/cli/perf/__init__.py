"""How fast a cluster is, measured from here."""
