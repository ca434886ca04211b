"""A program that reads a page of HTML on standard input and answers with its main text as Markdown, for `readable`.

The first line is JSON: the page's `url`, and whether its encoding is `known` to be UTF-8.
"""

import json
import sys

from hermes_tools.toolsets.web.child import answer, confine


def main() -> None:
    """Read, extract, write."""
    import trafilatura
    from trafilatura.utils import decode_file

    confine()
    head, _, data = sys.stdin.buffer.read().partition(b"\n")
    about = json.loads(head)
    # Where the server names no character set, the page itself may.
    source = data.decode("utf-8", "replace") if about["known"] else decode_file(data)
    title = trafilatura.extract_metadata(source, default_url=about["url"]).title
    text = trafilatura.extract(
        source,
        url=about["url"],
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    answer(str(title or ""), text or trafilatura.html2txt(source) or "")


if __name__ == "__main__":
    main()
