"""Everything that runs on Spark. Knows the core, and nothing of services and HTTP."""
