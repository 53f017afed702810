#!/usr/bin/env python3
"""The version in project() is the newest numbered entry of CHANGELOG.md ("Unreleased" may stand above it)."""

import pathlib
import re

from lintlib import ROOT, finding, finish, read

CMAKE = pathlib.PurePosixPath("CMakeLists.txt")
CHANGELOG = pathlib.PurePosixPath("CHANGELOG.md")


def main() -> None:
    if not (ROOT / CMAKE).exists() or not (ROOT / CHANGELOG).exists():
        return
    match = re.search(r"project\s*\([^)]*?\bVERSION\s+(\d+(?:\.\d+)+)", read(CMAKE))
    if not match:
        finding(CMAKE, 1, "project() has no VERSION; add it")
        return
    version = match.group(1)
    for number, line in enumerate(read(CHANGELOG).split("\n"), 1):
        entry = re.match(r"#{1,3}\s+\[?v?(\d+(?:\.\d+)+)\b", line)
        if not entry:
            continue
        if entry.group(1) != version:
            finding(CHANGELOG, number, f"newest entry is {entry.group(1)}, project() says {version}; make them agree")
        return


main()
finish()
