"""What a run means, in words: from its numbers alone, every claim with its calls."""

from duplex.debrief.values import Debrief, Finding, Recommendation, Span, Theme, Trend
from duplex.debrief.writing import write

__all__ = ["Debrief", "Finding", "Recommendation", "Span", "Theme", "Trend", "write"]
