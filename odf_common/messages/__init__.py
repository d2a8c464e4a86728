"""What the services tell each other over Kafka. Every message is JSON of a pydantic model; `schemas/messages` has them.

Unknown fields are ignored, unknown major versions are refused.
"""
