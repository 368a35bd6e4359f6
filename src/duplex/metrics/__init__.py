"""Numbers from a recording; no sockets, no engine."""
