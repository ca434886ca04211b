"""A program that reads a PDF on standard input and answers with its text, for `readable`."""

import io
import sys

from hermes_tools.toolsets.web.child import answer, confine

MAX_CHARACTERS = 2_000_000


def main() -> None:
    """Read, extract, write."""
    from pypdf import PdfReader

    confine()
    reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages, 1):
        text = page.extract_text().strip()
        pages.append(f"[Page {number}]\n{text}" if text else "")
        size += len(text)
        if size > MAX_CHARACTERS:
            pages.append("[The rest of the document was left out.]")
            break
    title = str(reader.metadata.title or "") if reader.metadata is not None else ""
    answer(title, "\n\n".join(filter(None, pages)))


if __name__ == "__main__":
    main()
