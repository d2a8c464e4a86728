"""The supervisor: the processes of one system, started together, kept alive, stopped in order."""

from services.supervisor.run import run
from services.supervisor.services import Service, default_services
from services.supervisor.status import ServiceState, ServiceStatus
from services.supervisor.supervisor import Supervisor, SystemFailedError, SystemRunsError

__all__ = [
    "Service",
    "ServiceState",
    "ServiceStatus",
    "Supervisor",
    "SystemFailedError",
    "SystemRunsError",
    "default_services",
    "run",
]
