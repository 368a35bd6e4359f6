"""The caller's own phrases, one of which the seed picks each time."""

from __future__ import annotations

GREETINGS = ("", "Hi. ", "Hello. ", "Hi there. ", "Hello there. ", "Good day. ")
LEADS = ("", "", "", "Sure. ", "Yes. ", "Of course. ", "Okay. ")
BYES = (
    "Great, thank you. Goodbye.",
    "Perfect, thanks so much. Bye.",
    "Wonderful, thank you very much. Goodbye.",
    "Thanks a lot, that's great. Bye.",
    "Lovely, thanks for your help. Goodbye.",
)
BYES_UNDONE = (
    "All right, thank you anyway. Goodbye.",
    "Okay, thanks for trying. Bye.",
    "No, thank you, that doesn't work for me. Goodbye.",
)
AGAIN = (
    "Sorry, could you say that again?",
    "Pardon, could you repeat that?",
    "Sorry, I didn't catch that.",
)
RIGHT = "Yes, the rest is right, thank you."
DOUBTS = ("Sorry, is that done now?", "So is that settled now?", "Sorry, is it all done?")
PROMPTS = ("Hello? Are you still there?", "Hello?", "Are you still there?")


def sentence(text: str) -> str:
    """Return ``text`` ending as a sentence does."""
    text = text.strip()
    return text if not text or text[-1] in ".?!" else f"{text}."
