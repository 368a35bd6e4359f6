"""What happened against what was expected, with evidence."""

from duplex.grading.checks import Check, Grade, grade
from duplex.grading.evidence import Evidence

__all__ = ["Check", "Evidence", "Grade", "grade"]
