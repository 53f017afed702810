#!/usr/bin/env python3
"""Relative links in Markdown files lead somewhere, and so do the paths in CONTRIBUTING's table."""

import re
import urllib.parse

from lintlib import ROOT, files, finding, finish, read


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a Markdown file's headings."""
    found: dict[str, int] = {}
    names = set(re.findall(r'<a\s+(?:name|id)="([^"]+)"', text))
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", without_code(text), flags=re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        names.add(f"{slug}-{count}" if count else slug)
    return names


def without_code(text: str) -> str:
    """The text with fenced blocks blanked out, line numbers kept."""
    fence = r"^(```|~~~)[^\n]*\n.*?^\1[^\n]*$"
    return re.sub(fence, lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S | re.M)


def check_links(path) -> None:
    for number, line in enumerate(without_code(read(path)).split("\n"), 1):
        line = re.sub(r"`[^`]*`", "", line)
        links = re.findall(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", line)
        links += re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", line)
        for link in links:
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            base = ROOT if target.startswith("/") else (ROOT / path).parent
            file = base / target.lstrip("/") if target else ROOT / path
            if not file.exists():
                finding(path, number, f"link to {link}, which does not exist; correct the path or remove the link")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                finding(path, number, f"link to {link}: no heading gives this anchor; correct it")


def check_table(path) -> None:
    for number, line in enumerate(read(path).split("\n"), 1):
        if not line.lstrip().startswith("|"):
            continue
        for name in re.findall(r"`([^`\s]+/[^`\s]*)`", line):
            if not re.search(r"[*<>{}]", name) and not (ROOT / name).exists():
                finding(path, number, f"`{name}` does not exist; correct the table")


for markdown in files(".md"):
    check_links(markdown)
    if str(markdown) == "CONTRIBUTING.md":
        check_table(markdown)
finish()
