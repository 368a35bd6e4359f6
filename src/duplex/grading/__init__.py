"""What happened against what was expected, with evidence."""
