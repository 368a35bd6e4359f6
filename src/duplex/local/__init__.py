"""The embedded voices and the local server that speaks their protocol."""
