"""What is kept of a call: written while it runs, read back as one frozen value.

Nothing here measures or grades. The call loop drives the recorder; everything
after the call starts from :class:`Recording`.
"""

from duplex.recording.extract import (
    BackendUsage,
    Delegation,
    Fault,
    Session,
    Transcript,
)
from duplex.recording.line_stems import LegStems, LegTick
from duplex.recording.recorder import AUDIO_FILES, CallRecorder
from duplex.recording.recording import Recording

__all__ = [
    "AUDIO_FILES",
    "BackendUsage",
    "CallRecorder",
    "Delegation",
    "Fault",
    "LegStems",
    "LegTick",
    "Recording",
    "Session",
    "Transcript",
]
