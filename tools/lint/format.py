#!/usr/bin/env python3
"""C++ files are formatted by clang-format 21. format.py --fix rewrites them."""

import re
import shutil
import subprocess
import sys

from lintlib import CXX, ROOT, files, finding, finish

VERSION = "21"


def find_tool() -> str:
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if tool := shutil.which(name):
            text = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", text):
                return tool
    sys.exit(f"format: clang-format {VERSION} is not here; run this with: ./dev lint")


def main() -> None:
    sources = [str(p) for p in files(*CXX, under=("src", "tests", "microbench", "examples"))]
    if not sources:
        return
    if sys.argv[1:] == ["--fix"]:
        subprocess.run([find_tool(), "-i", *sources], check=True, cwd=ROOT)
        return
    run = subprocess.run(
        [find_tool(), "--dry-run", *sources], check=False, cwd=ROOT, capture_output=True, text=True
    )
    first_of_file = {}
    for match in re.finditer(r"^(.+?):(\d+):\d+: (?:warning|error): ", run.stderr, flags=re.M):
        first_of_file.setdefault(match.group(1), int(match.group(2)))
    for path, line in sorted(first_of_file.items()):
        finding(path, line, "not formatted from here on; run: ./dev shell --test -- tools/lint/format.py --fix")
    if run.returncode != 0 and not first_of_file:
        sys.exit(f"format: clang-format failed:\n{run.stderr}")


main()
finish()
