"""`pytest tests/transcripts --rewrite` writes the transcripts anew; the difference is to be read before it is kept."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the transcripts anew")
