"""Which last words of a caller end a call, and which still want something."""

from __future__ import annotations

import pytest

from duplex.application.closing import is_closing


@pytest.mark.parametrize(
    "text",
    [
        "Perfect, thank you so much. Goodbye!",
        "Great, thanks. Bye.",
        "That's all I need, thank you. Have a great day!",
        "Awesome, that's everything I wanted. Thanks for your help!",
        "No, thank you, that's all.",
        "Okay, thanks anyway. Bye.",
        "Great, I look forward to seeing you then. Take care!",
        "Wonderful! We'll see you on Friday at seven. Thanks, bye!",
        "Perfect. I really appreciate it. Have a good one.",
        "Nope, I'm all set. Thanks again for everything, goodbye.",
        "That's great, thank you for changing it. Bye!",
        "Thanks for letting me know. I'll call back tomorrow. Goodbye.",
        "Okay, I'll wait for the confirmation. Thank you! Bye.",
        "Thanks, you also have a good night.",
    ],
)
def test_words_that_close_a_conversation(text: str) -> None:
    assert is_closing(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, and could you also send me the address? Goodbye.",
        "Thank you. What time do you close?",
        "Thanks, but I need it at eight instead.",
        "Thank you. Please add a high chair.",
        "Actually, thank you, make it three.",
        "Thanks. I'd like a window seat.",
        "Thank you, is parking available?",
        "Thanks, hold on.",
        "I want to change that, thanks.",
        "That's not right, thank you. Bye.",
        "At seven, please.",
        "",
    ],
)
def test_a_request_is_a_request_however_politely_it_ends(text: str) -> None:
    assert not is_closing(text)
