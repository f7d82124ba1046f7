"""Spark's own Kafka connector: its jars, fetched once from Maven Central, for a session of PySpark to load.

Where they cannot be had, `connector_jars()` raises `KafkaAbsent` with a sentence fit for a skip line.
"""

from pathlib import Path

from tests.peers import jars

VERSION = "4.2.0"
HOME = jars.CHECKOUT / ".cache" / f"spark-kafka-{VERSION}"
POM = Path(__file__).with_name("connector.xml")


def connector_jars() -> str:
    """What to give a session as `spark.jars`."""
    return ",".join(sorted(map(str, jars.folder(POM, HOME).glob("*.jar"))))
