"""A call while it goes on, told from the files that its runner flushes once a second.

Reading only, at a bounded pace, once for however many people look, and not at all when
nobody does. Nothing here reaches the process that holds the call. Speech is found and
latencies are measured by the code that measures finished calls, on what there is so far.
"""
