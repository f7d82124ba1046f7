"""`mypy --strict` and pyright accept every Python example of README.md and of docs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.examples import Example, examples, examples_of

PLAIN = """\
```python
one = 1
```
<!-- continues the example above -->
```python
two = one + 1
```
<!-- hidden
three = 3
-->
```python
four = three + 1
```
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All examples as files, and what the checkers have to know."""
    folder = tmp_path_factory.mktemp("examples")
    for example in examples():
        (folder / example.file_name).write_text(example.code, encoding="utf-8")
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        # pyarrow has no types, and functions in the streams DSL get values of any type.
        "reportMissingTypeStubs": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        "reportUnknownArgumentType": False,
        "reportUnknownLambdaType": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return folder


def test_examples_are_found() -> None:
    assert [each.code for each in examples_of("page.md", PLAIN)] == [
        "one = 1\n\ntwo = one + 1\n",
        "three = 3\nfour = three + 1\n",
    ]
    assert {each.page for each in examples()} >= {
        "README.md",
        "docs/guide/client.md",
        "docs/guide/streams.md",
    }


@pytest.mark.timeout(180)
def test_mypy_accepts_the_examples(folder: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--enable-error-code=deprecated"]
    command += ["--ignore-missing-imports", "--config-file=", f"--cache-dir={folder / 'cache'}", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(180)
def test_pyright_accepts_the_examples(folder: Path) -> None:
    command = [Path(sys.executable).with_name("basedpyright"), "--project", folder]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(180)
def test_an_editor_knows_the_types_of_the_readme(folder: Path) -> None:
    """What completion offers is what pyright reveals."""
    readme: Example = examples()[0]
    code = readme.code.replace(
        "for record in consumer:",
        "reveal_type(consumer.poll())\n    for record in consumer:\n        reveal_type(record)",
    )
    path = folder / "revealed.py"
    path.write_text(code)
    command = [Path(sys.executable).with_name("basedpyright"), "--pythonpath", sys.executable, path]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    finally:
        path.unlink()
    assert re.findall(r'Type of "(.+?)" is "(.+?)"', done.stdout) == [
        ("consumer.poll()", "list[Record]"),
        ("record", "Record"),
    ], done.stdout + done.stderr
