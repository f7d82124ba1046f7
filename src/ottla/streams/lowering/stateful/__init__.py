"""Operators that remember: what each keeps, what it gives out, and how Spark keeps it.

An operator is a class that knows nothing of Spark (`operator.py`): records of one operator partition come to it in
their order, it reads and writes stores, and lists what flows out. `host.py` runs one inside transformWithState,
`transform.py` builds the DataFrame around it. One operator a file; the function that lowers it stands beside it.
"""
