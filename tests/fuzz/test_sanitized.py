"""The compiled parts under sanitizers, and that these see what is wrong with them."""

import shutil
from pathlib import Path

import pytest

from tests.faults.seeds import count, seeded
from tests.fuzz import sanitized

# What each target has to find: the source, what stands there, and what reads too far.
FAULTS = {
    "messages": ("wire/_swift.c", "in->end - in->at >= size;", "in->end - in->at >= size - 1;"),
    "walks": (
        "wire/_walk.h",
        "if (at == end)\n            return 1;",
        "if (at > end)\n            return 1;",
    ),
    "readers": ("wire/_records.c", "> (uint64_t)(end - pos))", "> (uint64_t)(end - pos) + 4)"),
    "appends": ("log/_plain.c", "if (size < HEADER_BYTES ||", "if (size < HEADER_BYTES - 20 ||"),
    "requests": ("broker/_produce.h", "if (end - at < 9)", "if (end - at < 1)"),
}


@pytest.fixture(autouse=True)
def tools() -> None:
    """Skip aloud where nothing can be built."""
    why_not = sanitized.missing()
    if why_not is not None:
        pytest.skip(f"no sanitizers: {why_not}")


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(count("OTTLA_FUZZ_INPUTS", 20_000), id="short", marks=pytest.mark.timeout(600)),
        pytest.param(
            count("OTTLA_FUZZ_INPUTS", 1_000_000), id="soak", marks=[pytest.mark.long, pytest.mark.timeout(0)]
        ),
    ],
)
def test_compiled_parts_touch_no_memory_but_their_own(inputs: int) -> None:
    seed = seeded(__file__, OTTLA_FUZZ_INPUTS=inputs).randrange(1 << 32)
    code, said = sanitized.run(sanitized.built(), inputs, seed)
    assert code == 0, f"python -m tests.fuzz.sanitized --inputs {inputs} --seed {seed}\n{said[-8000:]}"
    print(said)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", FAULTS)
def test_a_read_too_far_is_found(tmp_path: Path, target: str) -> None:
    file, right, wrong = FAULTS[target]
    for source in (sanitized.ROOT / "src").glob("ottla/*/*.[ch]"):
        copy = tmp_path / "src" / source.relative_to(sanitized.ROOT / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    path = tmp_path / "src" / "ottla" / file
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))
    sanitized.build(tmp_path / "built", tmp_path / "src")
    code, said = sanitized.run(tmp_path / "built", 20_000, 1, target)
    assert code != 0
    assert "heap-buffer-overflow" in said
