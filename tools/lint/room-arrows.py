#!/usr/bin/env python3
"""Rooms (folders of src/) include only the rooms they may use; outside headers stay in their room; the pure
rooms touch no clock, file, thread or environment. docs/architecture.md shows the same table."""

import re

from lintlib import CXX, code_lines, files, finding, finish

MAY_USE = {
    "core": "",
    "host": "core",
    "record": "core host",
    "models": "core host",
    "workload": "core",
    "runtime": "core",
    "verify": "core",
    "draft": "core runtime",
    "heads": "core draft runtime",
    "engine": "core verify draft runtime",
    "compat": "core host runtime verify draft engine",
    "bench": "core host record workload runtime draft verify engine compat",
    "plan": "core host record runtime",
    "gate": "core record",
    "report": "core record gate",
    "train": "core record heads runtime engine",
    "serve": "core host record engine gate",
}  # cli, the composition, uses all

# header: the only places that may include it
OUTSIDE = [
    (r"(llama|llama-cpp|ggml[\w-]*|gguf)\.h", ("src/runtime/llama/",)),
    (r"curl/.*", ("src/models/",)),
    (r"httplib\.h|httplib/.*", ("src/serve/",)),
    (r"torch/.*|ATen/.*|c10/.*", ("src/train/",)),
]
IN_TESTS = r"gguf\.h|ggml\.h|ggml-cpp\.h"  # tests/support writes small GGUF files with them

PURE = ("verify", "gate", "report")
IMPURE_HEADER = (
    r"fstream|iostream|cstdio|stdio\.h|thread|mutex|shared_mutex|condition_variable|future|semaphore"
    r"|latch|barrier|ctime|time\.h|unistd\.h|sys/.*|core/(clock|file|log)\.hpp"
)
IMPURE_CODE = [
    (r"\b(steady|system|high_resolution|utc|file)_clock\b", "reads a clock"),
    (r"\b(std::)?(getenv|secure_getenv|setenv)\s*\(", "reads the environment"),
    (r"\bstd::random_device\b", "takes a random number from the system"),
    (r"\bthread_local\b", "keeps state per thread"),
    (
        r"\bfilesystem::(exists|is_\w+|status|file_size|last_write_time|space|\w*directory_iterator|create_\w+|copy\w*"
        r"|remove\w*|rename|read_symlink|current_path|absolute|canonical|weakly_canonical|temp_directory_path)\b",
        "looks at files",
    ),
]


def check_room(path, room: str, lines: list[str]) -> None:
    may_use = MAY_USE[room].split() if room in MAY_USE else None
    for number, line in enumerate(lines, 1):
        if match := re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line):
            header = match.group(1)
            used = header.split("/")[0]
            if "/" in header and used in {*MAY_USE, "cli"} and used != room:
                if room != "cli" and used not in (may_use or []):
                    allowed = ", ".join(may_use or []) or "nothing"
                    finding(path, number, f"room {room} may not use {used} (it may use: {allowed}); "
                            "move the shared struct down, or pass the thing in from cli")
                if header.endswith("_impl.hpp"):
                    finding(path, number, f"{header} is internal to room {used}; use a header that is its contract")
            if room in PURE and re.fullmatch(IMPURE_HEADER, header):
                finding(path, number, f"room {room} is pure: {header} is not for it; take the value as an argument")
        if room in PURE:
            for pattern, does in IMPURE_CODE:
                if re.search(pattern, line):
                    finding(path, number, f"room {room} is pure, but this {does}; take the value as an argument")


def check_outside(path, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        for pattern, places in OUTSIDE:
            if not re.fullmatch(pattern, match.group(1)) or str(path).startswith(places):
                continue
            if path.parts[0] == "tests" and re.fullmatch(IN_TESTS, match.group(1)):
                if str(path).startswith("tests/support/"):
                    continue
                places = ("tests/support/",)
            finding(path, number, f"{match.group(1)} may be included only in {', '.join(places)}; use that room")


for path in files(*CXX, under=("src", "tests", "microbench", "examples")):
    lines = code_lines(path)
    if path.parts[0] == "src" and len(path.parts) > 2:
        room = path.parts[1]
        if room in MAY_USE or room == "cli":
            check_room(path, room, lines)
        else:
            finding(path, 1, f"there is no room {room}; add it to tools/lint/room-arrows.py and docs/architecture.md")
    check_outside(path, lines)
finish()
