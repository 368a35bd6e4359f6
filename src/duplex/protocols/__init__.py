"""One pure codec per wire dialect: bytes in, values out; no sockets, no clocks."""
