"""The demo: the flights and weather of New York 2013, replayed through the whole system."""
