"""What a language model is asked about a call, and what becomes of its answers.

Pure: a call becomes a case, a case a request; a reply becomes a vote or a reason why it
is none, and votes become a judgement. Whoever asks the model lives above (``Judge`` is
the seam), so nothing here needs a socket.
"""

from duplex.grading.judging.case import JudgeCase, Turn, case_of
from duplex.grading.judging.judgement import Cast, Judge, Judgement, Point, Quoted, Ruling
from duplex.grading.judging.questions import (
    ask_questions,
    decide_answers,
    read_answers,
    unanswered,
)
from duplex.grading.judging.reading import read_vote
from duplex.grading.judging.rubric import JUDGE_VERSION, ask_of
from duplex.grading.judging.voting import decide, failed

__all__ = [
    "JUDGE_VERSION",
    "Cast",
    "Judge",
    "JudgeCase",
    "Judgement",
    "Point",
    "Quoted",
    "Ruling",
    "Turn",
    "ask_of",
    "ask_questions",
    "case_of",
    "decide",
    "decide_answers",
    "failed",
    "read_answers",
    "read_vote",
    "unanswered",
]
