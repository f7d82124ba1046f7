"""The reference: what a plan means, in plain Python, record by record, without Spark.

It is what `app.test` runs unless told otherwise, and what tests hold the lowering to. It is written for reading: state
is in dicts, and what is forgotten is what no record can ask for any more.

    interpreter     brings records to operators, and collects what is written
    by_batch        the same where a table shows one change a key and micro-batch
    operators       the table: which class does what each node of the plan means
    change          what flows between operators, and what an operator is
    calling         calling the user's functions
    keys, order     when two keys are one, and in which order records and keys are taken
"""
