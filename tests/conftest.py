"""Fixtures that need a server live in `tests/fixtures` and start it when a test first asks."""

pytest_plugins = ("tests.fixtures.postgres", "tests.fixtures.s3")
