"""What Spark forks the Python processes of its tasks from: a process that has loaded what all of them need.

Spark ends a process of Python that was idle for a minute, and a query whose topic is quiet for longer would begin
every batch by loading PySpark and the client. A fork has what its parent had.

K1  Nothing is loaded here that starts a thread, since a fork has none of its parent's: neither NumPy nor PyArrow.
"""

import gc

import pyspark.worker
from pyspark.daemon import manager

import ottla.client.producer.accumulator
import ottla.client.producer.sender
import ottla.client.producer.transaction_client
import ottla.spark.connection
import ottla.spark.sink.options
import ottla.spark.source.feed
import ottla.spark.source.task

LOADED = (
    pyspark.worker,
    ottla.client.producer.accumulator,
    ottla.client.producer.sender,
    ottla.client.producer.transaction_client,
    ottla.spark.connection,
    ottla.spark.sink.options,
    ottla.spark.source.feed,
    ottla.spark.source.task,
)

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
