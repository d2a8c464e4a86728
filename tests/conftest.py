"""Fixtures that need a server live in `tests/fixtures` and start it when a test first asks."""

import os

from hypothesis import settings

pytest_plugins = ("tests.fixtures.kafka", "tests.fixtures.postgres", "tests.fixtures.s3")

# The gate tries the same examples each time; at home each run tries new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("home", deadline=None)
settings.load_profile("ci" if "CI" in os.environ else "home")
