"""The application under test: instructions, state, tools and the work it is delegated."""
