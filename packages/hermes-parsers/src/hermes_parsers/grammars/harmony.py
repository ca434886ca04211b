"""OpenAI's harmony: messages with a channel and a recipient in their header."""

from __future__ import annotations

import re
from collections.abc import Generator

from hermes_parsers.grammars.arguments import read_arguments, settle
from hermes_parsers.markers import markers
from hermes_parsers.reading import one_of, run, space
from hermes_parsers.scan import Scan

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
_STARTS = (START, CHANNEL)
_CHANNELS = ("analysis", "commentary", "final")
_SKIPPED = (*(f"assistant{name}" for name in _CHANNELS), "assistant to=")
_LONGEST = 1024
_RECIPIENT = re.compile(r"\bto=([^\s<]+)").search
_CHANNEL = re.compile(r"(analysis|commentary|final)\b").findall
_UNTIL_BODY = re.compile(r"[^{<\n]*").match
_SKIPPED_HEADER = re.compile(r"\s*(?:to=)?([\w.\-]+?)\s*(?:commentary)?\s*(?:json|code)?\s*").fullmatch


def read_harmony(scan: Scan) -> Generator[None, None, None]:
    """Read a whole text."""
    yield from _Harmony(scan).run()


class _Harmony:
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.thinking = scan.options.reasoning != "off"
        self.skipped = False
        self.searched = 0

    def run(self) -> Generator[None, None, None]:
        scan, src = self.scan, self.scan.src
        channel = "analysis" if scan.options.reasoning == "open" else "final"
        if scan.options.lenient and (word := (yield from one_of(src, _CHANNELS))):
            self.skipped = True
            scan.recover("skipped_special_tokens")
            channel = yield from self._skipped_message(word)
        yield from self._text(channel)

    def _text(self, channel: str) -> Generator[None, None, None]:
        """Read the text of messages, and the messages between."""
        scan, src = self.scan, self.scan.src
        while True:
            scan.reasoning = self.thinking and channel == "analysis"
            words = (*_STARTS, MESSAGE, *ENDS, *(_SKIPPED if self.skipped else ()))
            found = markers(words)
            index, word = found.next(src)
            scan.text(src.text[src.pos : index])
            src.pos = index + len(word)
            if not word:
                if src.ended:
                    return
                yield
                continue
            if word in _STARTS:
                src.pos = index
                channel = yield from self._header(word, channel)
            elif word in _SKIPPED:
                channel = yield from self._skipped_message(word.removeprefix("assistant"))
            elif word in ENDS:
                channel = "final"

    def _header(self, word: str, channel: str) -> Generator[None, None, str]:
        """Read a header; returns the channel of the text that follows."""
        src = self.scan.src
        src.capture(src.pos)
        start = src.at
        found = markers((MESSAGE, *ENDS))
        # Where an earlier header looked and found nothing is not looked again: a flood of openers takes linear time.
        src.pos = max(src.pos + len(word), self.searched - src.offset)
        while True:
            src.pos, mark = found.next(src)
            self.searched = src.at
            near = src.at - start <= _LONGEST
            if mark or src.ended or not near:
                break
            yield
        if not near or mark in ENDS:
            return self._broken_header(start, word, channel)
        src.pos += len(mark)
        header = src.captured()
        recipient = _RECIPIENT(header)
        if not mark:
            if recipient is None:
                return self._broken_header(start, word, channel)
            self.scan.call().fail("truncated", "the text ends inside the header of the call", header)
            src.release()
            return channel
        if recipient is not None:
            yield from self._call(recipient.group(1))
            return "final"
        src.release()
        channels = _CHANNEL(header)
        return channels[-1] if channels else "final"

    def _broken_header(self, start: int, word: str, channel: str) -> str:
        scan, src = self.scan, self.scan.src
        src.rewind(start + len(word))
        scan.text(word)
        src.release()
        return channel

    def _call(self, recipient: str) -> Generator[None, None, None]:
        scan, src = self.scan, self.scan.src
        call = scan.call()
        call.open(recipient.removeprefix("functions."))
        scan.unclosed = False
        body = src.at
        yield from space(src)
        if (yield from one_of(src, ENDS)):
            call.add("{}")
            call.close()
            return
        fault = yield from read_arguments(scan, call)
        if not fault:
            after = src.at
            yield from space(src)
            if not (yield from one_of(src, ENDS)):
                src.rewind(after)
        yield from settle(scan, call, fault, _STARTS, ENDS, r"\w", body=body)
        src.release()

    def _skipped_message(self, word: str) -> Generator[None, None, str]:
        """Read on after the channel of a message whose special tokens are gone."""
        src = self.scan.src
        if word not in (" to=", "commentary"):
            return word
        src.capture(src.pos)
        start = src.at
        header = yield from run(src, _UNTIL_BODY, _LONGEST)
        found = _SKIPPED_HEADER(header)
        if found and src.text[src.pos : src.pos + 1] == "{" and (word == " to=" or "to=" in header):
            yield from self._call(found.group(1))
            return "final"
        src.rewind(start)
        src.release()
        return "commentary"
