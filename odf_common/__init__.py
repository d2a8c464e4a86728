"""The Open Data Fabric core: identities, metadata, chains, slices and where they are stored.

Knows nothing of Spark, Kafka or HTTP.
"""
