"""Long-running processes and their edges; today the command line."""
