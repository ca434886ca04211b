"""Judging short answers: a normalised match, and a model where that does not settle it."""

import re
import string
import unicodedata
from collections.abc import Sequence

from hermes_envs.clients import ChatClient
from hermes_envs.messages import Message, user_message

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKER = re.compile(r"^\W*(?:final )?answer\W*:\W*(.+)$", re.IGNORECASE | re.MULTILINE)
_LONGEST = 2000
_QUESTION = """\
Question: {question}
Reference answer: {reference}
Given answer: {given}

Does the given answer say the same as the reference answer? It must commit to one answer. Reply YES or NO."""


def final_answer(messages: Sequence[Message]) -> str:
    """What an agent answered: the last line `Answer: …` of its last message, else that whole message."""
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant" or not isinstance(last.get("content"), str):
        return ""
    text = last["content"][-_LONGEST:]
    marked = _MARKER.findall(text)
    return str(marked[-1] if marked else text).strip()


def normalised(text: str) -> str:
    """Lower case without accents, articles, punctuation and extra white space."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = "".join(" " if letter in string.punctuation else letter for letter in plain)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def matches(given: str, references: Sequence[str]) -> bool:
    """Whether the answer is one of the references, or names one in a few words more.

    An answer that lists alternatives is not a match: at most three words may surround the reference.
    """
    words = normalised(given).split()
    for reference in references:
        wanted = normalised(reference).split()
        if wanted and len(words) <= len(wanted) + 3 and _contains(words, wanted):
            return True
    return False


async def judged_same(client: ChatClient, question: str, references: Sequence[str], given: str) -> bool:
    """Whether a judge model takes the answer for right.

    Raises:
        ProviderError: The judge could not be asked.
    """
    prompt = _QUESTION.format(question=question, reference=" or ".join(references), given=given[:_LONGEST])
    turn = await client.complete([user_message(prompt)], None, temperature=0.0, max_tokens=512)
    verdict = re.findall(r"\b(YES|NO)\b", (turn.content or "").upper())
    return bool(verdict) and verdict[-1] == "YES"


def _contains(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(words[at : at + len(wanted)] == list(wanted) for at in range(len(words) - len(wanted) + 1))
