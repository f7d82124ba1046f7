"""How settings are written, and what is set where nobody says otherwise."""

import pytest

from ottla.spark.defaults import launch_defaults, session_defaults, spelled
from ottla.spark.failure import SparkFailure
from ottla.spark.master import parse


def test_spelling() -> None:
    assert spelled(
        {
            "spark_executor_memory": "2g",
            "spark.executorEnv.MY_VAR": 3,
            "spark_sql_ansi_enabled": False,
            "spark.x": None,
        }
    ) == {
        "spark.executor.memory": "2g",
        "spark.executorEnv.MY_VAR": "3",
        "spark.sql.ansi.enabled": "false",
        "spark.x": None,
    }


@pytest.mark.parametrize(
    ("name", "hint"), [("mastr", "did you mean master?"), ("executor_memory", "begin with spark")]
)
def test_what_is_no_setting(name: str, hint: str) -> None:
    with pytest.raises(SparkFailure) as caught:
        spelled({name: "x"})
    assert hint in caught.value.hint


def test_java_is_told_to_be_quiet() -> None:
    found = launch_defaults({"spark.driver.extraJavaOptions": "-Da=b"}, is_configured=False)
    quiet, rest = found["spark.driver.extraJavaOptions"].split(" ", 1)
    assert quiet.startswith("-Dlog4j2.configurationFile=file:///") and quiet.endswith("/log4j2.properties")
    assert rest == "-Da=b"
    assert found["spark.ui.showConsoleProgress"] == "false"


@pytest.mark.parametrize(
    ("settings", "is_configured"),
    [
        ({"spark.log.level": "INFO"}, False),
        ({"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=mine"}, False),
        ({}, True),
    ],
)
def test_whoever_sets_up_logs_is_obeyed(settings: dict[str, str | None], is_configured: bool) -> None:
    assert "spark.driver.extraJavaOptions" not in launch_defaults(settings, is_configured=is_configured)


def test_a_local_session() -> None:
    found = session_defaults(parse("local[3]"), 16, {})
    assert found["spark.sql.shuffle.partitions"] == "3"
    assert found["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.python.unix.domain.socket.enabled"] == "true"
    assert found["spark.python.daemon.module"] == "ottla.spark.daemon"
    assert found["spark.sql.streaming.checkpointFileManagerClass"].endswith(
        "FileSystemBasedCheckpointFileManager"
    )
    # The path of a socket has to be short, and who moves Java's directory may have made it long.
    moved = {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/a/long/way"}
    assert "spark.python.unix.domain.socket.enabled" not in session_defaults(parse("local"), 1, moved)


def test_a_session_on_a_cluster() -> None:
    found = session_defaults(parse("yarn"), 16, {"spark.executor.instances": "4"})
    assert found["spark.sql.shuffle.partitions"] == "4"
    assert "spark.driver.host" not in found
    assert "spark.python.daemon.module" not in found
    assert "spark.sql.streaming.checkpointFileManagerClass" not in found
    assert "spark.sql.shuffle.partitions" not in session_defaults(parse("yarn"), 16, {})
