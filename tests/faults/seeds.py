"""Chance that can be repeated: a seed from OTTLA_SEED, or a new one, printed with the command that replays it."""

import os
import random
from pathlib import Path


def seeded(test: str, **counts: int) -> random.Random:
    """Chance for one test. The line it prints is shown when the test fails."""
    seed = int(os.environ.get("OTTLA_SEED") or random.SystemRandom().randrange(1 << 32))
    settings = " ".join(f"{name}={value}" for name, value in counts.items())
    print(f"to replay: OTTLA_SEED={seed} {settings} pytest {Path(test).name}".replace("  ", " "))
    return random.Random(seed)


def count(name: str, default: int) -> int:
    """How often, unless the environment says otherwise."""
    return int(os.environ.get(name) or default)
