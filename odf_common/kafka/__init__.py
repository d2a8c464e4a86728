"""Kafka's edge: clients with the project's settings, topics and their names. The only room that imports a client."""
