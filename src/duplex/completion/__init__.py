"""When a conversation is over: a text model that looks on, and may be wrong for a while."""
