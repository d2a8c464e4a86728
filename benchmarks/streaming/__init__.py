"""The whole system beside its peers: `python -m benchmarks streaming`, or `python -m benchmarks.streaming PART…`."""


def main(*parts: str) -> None:
    """Run the named parts, all without a name."""
    from benchmarks.streaming.run import run

    run(parts)
