"""The shapes results take outside: schema 2.0 and, later, its two other views."""
