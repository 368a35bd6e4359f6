"""Any recording people have: opened, heard once from end to end, and judged.

Layer 2: it decodes, listens and says whether numbers may be given. What the
numbers are is decided in ``metrics``.
"""

from duplex.intake.health import Health, Reason, Verdict, health_of
from duplex.intake.labels import Labels, read_labels
from duplex.intake.listen import MAIN_DETECTOR, Listening, listen
from duplex.intake.roles import Roles, told
from duplex.intake.two_sides import TwoSides, open_sides

__all__ = [
    "MAIN_DETECTOR",
    "Health",
    "Labels",
    "Listening",
    "Reason",
    "Roles",
    "TwoSides",
    "Verdict",
    "health_of",
    "listen",
    "open_sides",
    "read_labels",
    "told",
]
