"""The embedded broker: Apache Kafka as a child process, for one machine."""

from services.broker.broker import BrokerRunsError, EmbeddedBroker

__all__ = ["BrokerRunsError", "EmbeddedBroker"]
