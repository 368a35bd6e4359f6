"""A sound card as one end of a call: its devices, its two streams, its delay, its echo.

Nothing here knows a call. ``portaudio.py`` alone touches PortAudio, and only when it
is asked; all else takes blocks of samples with the moment they came, so that a
stand-in card in virtual time drives it as well. The participant ``person.py`` and the
verbs that play drive it.
"""
