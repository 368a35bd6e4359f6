"""Language models behind HTTP: where they are, and asking them one thing at a time."""
