"""What the rules share: which files there are, and how a finding is printed."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CXX = (".cpp", ".hpp", ".h")

_findings = 0


def files(*suffixes: str, under: tuple[str, ...] = ("",)) -> list[pathlib.PurePosixPath]:
    """Files of the checkout (tracked, or new and not ignored) with one of the suffixes, below one of the
    folders, as paths relative to the checkout."""
    chosen = []
    for name in _all_files():
        path = pathlib.PurePosixPath(name)
        if suffixes and not name.endswith(suffixes):
            continue
        if not any(folder == "" or name.startswith(folder + "/") for folder in under):
            continue
        if (ROOT / path).is_file():
            chosen.append(path)
    return sorted(chosen)


def _all_files() -> list[str]:
    # The folder may belong to another user than the one who runs the check; git would refuse it.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        out = subprocess.run(command, check=True, capture_output=True).stdout
        return sorted({name for name in os.fsdecode(out).split("\0") if name})
    except (OSError, subprocess.CalledProcessError):
        pass  # no git, or an unpacked archive
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return found


def read(path: pathlib.PurePosixPath) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def code_lines(path: pathlib.PurePosixPath) -> list[str]:
    """The lines of a C++ file with comments and the contents of string literals blanked out."""

    def blank(match: re.Match) -> str:
        text = match.group(0)
        if text.startswith("R"):
            inner = text
        elif text[0] in "\"'":
            return text[0] + " " * (len(text) - 2) + text[-1]
        else:
            inner = text
        return re.sub(r"[^\n]", " ", inner)

    text = read(path)
    # An include's "path" is no string: it is kept.
    kept = re.sub(r'^(\s*#\s*include\s*)"([^"\n]*)"', r"\1<<\2>>", text, flags=re.M)
    pattern = r'R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\''
    kept = re.sub(pattern, blank, kept, flags=re.S)
    return re.sub(r"<<([^<>\n]*)>>", r'"\1"', kept).split("\n")


def finding(path: object, line: int, what: str) -> None:
    global _findings
    _findings += 1
    print(f"{path}:{line}: {what}")


def finish() -> None:
    """Ends the rule's script: status 1 if there was a finding."""
    sys.exit(1 if _findings else 0)
