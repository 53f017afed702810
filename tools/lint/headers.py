#!/usr/bin/env python3
"""Each header has `#pragma once`; no file has `using namespace`. Headers named *-inl.hpp are included once per
instruction set, behind a guard that Highway toggles."""

import re

from lintlib import CXX, code_lines, files, finding, finish

for path in files(*CXX, under=("src", "tests", "microbench", "examples")):
    lines = code_lines(path)
    once = any(re.match(r"\s*#\s*pragma\s+once\b", line) for line in lines)
    if path.suffix != ".cpp" and not path.name.endswith("-inl.hpp") and not once:
        finding(path, 1, "header without #pragma once; add it after the opening comment")
    for number, line in enumerate(lines, 1):
        if re.search(r"\busing\s+namespace\b", line):
            finding(path, number, "using namespace; write the name in full, or `using` for the one name")
finish()
