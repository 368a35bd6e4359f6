"""One internal result in the shapes that other tools read."""
