"""The whole system beside its peers: `python -m benchmarks streaming`, or `python -m benchmarks.streaming PART…`."""


def main() -> None:
    """Run all parts."""
    from benchmarks.streaming.run import run

    run()
