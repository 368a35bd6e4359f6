"""What the local server can do wrong on purpose, for whoever tests what a client makes of it."""

from duplex.local.faults.line import Dialect, Fault, Line, Send, ServerTransport
from duplex.local.faults.plan import FAULTS, Conduct, Plan, Turned, parse_fault

__all__ = [
    "FAULTS",
    "Conduct",
    "Dialect",
    "Fault",
    "Line",
    "Plan",
    "Send",
    "ServerTransport",
    "Turned",
    "parse_fault",
]
