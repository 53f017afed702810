#!/usr/bin/env python3
"""Does `paceline canary` find seeded bugs? Copies the sources, puts in one bug at a time, builds, and runs the
canary on tiny models. A bug that no run reports (exit 13, or a failed check that names its place) has survived.

    ./dev shell --test -- tools/mutants/canary.py [NAME ...]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIFFERENT = 13
ABORTED = -6

# name: (file, what stands there, the bug)
MUTANTS = {
    "rollback-one-short": (
        "src/runtime/llama/llama_runtime.cpp",
        "  PACELINE_TRY_VOID(keep_rows(index(sequence), in_place));\n"
        "  for (const std::int32_t row : path.subspan(in_place)) {",
        "  if (path.empty()) PACELINE_TRY_VOID(keep_rows(index(sequence), in_place));\n"
        "  if (!path.empty()) {\n"
        "    const std::size_t kept = in_place + 1;\n"
        "    PACELINE_TRY_VOID(keep_rows(index(sequence), kept));\n"
        "    state.length += 1;\n"
        "  }\n"
        "  for (const std::int32_t row : path.subspan(in_place)) {"),
    "rollback-keeps-cells": (
        "src/runtime/llama/llama_runtime.cpp",
        "  const bool removed = llama_memory_seq_rm(memory_, id, first, -1);",
        "  const bool removed = llama_memory_seq_rm(memory_, id, first + 1, -1);"),
    "accepted-branch-is-lost": (
        "src/runtime/llama/llama_runtime.cpp",
        "    state.replay.push_back(rows_[static_cast<std::size_t>(row)].token);",
        "    if (state.replay.empty()) state.replay.push_back(rows_[static_cast<std::size_t>(row)].token);"),
    "toy-rollback-one-short": (
        "src/runtime/toy/toy.cpp",
        "      at(sequence).push_back(contexts_[static_cast<std::size_t>(row)]);\n    }\n",
        "      at(sequence).push_back(contexts_[static_cast<std::size_t>(row)]);\n    }\n"
        "    if (!path.empty() && static_cast<std::size_t>(path.back()) + 1 < contexts_.size()) {\n"
        "      at(sequence).push_back(contexts_[static_cast<std::size_t>(path.back()) + 1]);\n"
        "    }\n"),
    "commits-one-row-too-few": (
        "src/engine/engine.cpp",
        "i + 1 < match.emitted.size(); ++i) path.push_back",
        "i + 2 < match.emitted.size(); ++i) path.push_back"),
    "bonus-from-the-row-before": (
        "src/engine/engine.cpp",
        "static_cast<std::size_t>(row_of(node)),",
        "static_cast<std::size_t>(row_of(node == 0 ? k_tree_root : node)),"),
    "bonus-skipped": (
        "src/verify/match.hpp",
        "    if (child < 0) return match;",
        "    if (child < 0 && !match.path.empty() && match.path.size() == tree.depth()) match.emitted.pop_back();\n"
        "    if (child < 0) return match;"),
    "any-child-with-the-token": (
        "src/verify/match.hpp",
        "tree.nodes[i].parent == node && tree.nodes[i].token == token",
        "tree.nodes[i].token == token"),
    "sampler-top-p-before-top-k": (
        "src/verify/sampler.cpp",
        "  keep_top_k();\n  keep_top_p();\n",
        "  keep_top_p();\n  keep_top_k();\n"),
    "sampler-min-p-before-top-p": (
        "src/verify/sampler.cpp",
        "  keep_top_p();\n  keep_min_p();\n",
        "  keep_min_p();\n  keep_top_p();\n"),
    "sampler-draws-out-of-order": (
        "src/engine/engine.cpp",
        "                      text.emitted_.size());",
        "                      text.emitted_.size() + (node == k_tree_root ? 0U : 1U));"),
    "draft-cache-one-short": (
        "src/draft/draft_model.cpp",
        "runtime_->truncate(slot.sequence, common)",
        "runtime_->truncate(slot.sequence, std::min(common + 1, slot.committed.size()))"),
    "draft-cache-not-cut": (
        "src/draft/draft_model.cpp",
        "slot.committed[common] == slot.observed[common]) ++common;",
        "(common > 0 || slot.committed[common] == slot.observed[common])) ++common;"),
    "drafter-misses-tokens": (
        "src/engine/engine.cpp",
        "drafter_->observe(*text->slot_, std::span(text->emitted_).subspan(text->observed_))",
        "drafter_->observe(*text->slot_, std::span(text->emitted_).subspan(\n"
        "            text->observed_ == 0 ? 0 : std::min(text->observed_ + 1, text->emitted_.size() - 1)))"),
    "lookup-forgets-a-token": (
        "src/draft/lookup.cpp",
        "    for (const Token token : tokens) at(slot).push(token);",
        "    const bool later = tokens.size() > 1 && tokens.size() < 4;\n"
        "    for (const Token token : later ? tokens.subspan(1) : tokens) at(slot).push(token);"),
    "depth-runs-past-the-context": (
        "src/engine/generation.cpp",
        "limits.context - committed - 1, limits.rows - 1",
        "limits.context - committed, limits.rows - 1"),
}


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def build(tree: Path) -> None:
    if not (tree / "build/dev/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "dev"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    done = run(["cmake", "--build", "build/dev", "--target", "paceline_program", "paceline_write_gguf"], cwd=tree)
    if done.returncode != 0:
        raise SystemExit(f"the build failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def runs(tree: Path) -> list[list[str]]:
    tiny, window = str(tree / "tiny.gguf"), str(tree / "window.gguf")
    return [
        ["--target", "toy:7", "--draft", "toy:7,agree=0.7", "-n", "4"],
        ["--target", tiny, "--draft", tiny, "-n", "4"],
        ["--target", window, "--lookup", "-n", "3"],
    ]


def canary(tree: Path, arguments: list[str]) -> tuple[int, str]:
    done = run([str(tree / "build/dev/bin/paceline"), "canary", "--format", "json", *arguments], cwd=tree, timeout=120)
    try:
        cases = json.loads(done.stdout)["equality"]["cases"]
    except (json.JSONDecodeError, KeyError):
        return done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no output"
    found = [c for c in cases if c["outcome"] == "different"]
    kinds = sorted({f"{c['stage']}: {c['reason']}" for c in found})
    return done.returncode, ", ".join(kinds)


def judge(tree: Path) -> list[str]:
    found = []
    for arguments in runs(tree):
        code, words = canary(tree, arguments)
        if code == DIFFERENT:
            found.append(f"13 ({words})")
        elif code == ABORTED:
            found.append(f"stopped by a check ({words})")
        elif code != 0:
            found.append(f"exit {code}, not the canary's ({words})")
    return found


def caught(found: list[str]) -> bool:
    return any(words.startswith(("13 ", "stopped by a check")) for words in found)


def main() -> int:
    names = sys.argv[1:] or list(MUTANTS)
    unknown = [name for name in names if name not in MUTANTS]
    if unknown:
        raise SystemExit(f"no such bug: {', '.join(unknown)}; known are {', '.join(MUTANTS)}")
    os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache" if shutil.which("ccache") else "")
    survivors = []
    with tempfile.TemporaryDirectory(prefix="paceline-mutants-") as folder:
        tree = Path(folder)
        listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        os.environ["CCACHE_BASEDIR"] = str(tree)
        build(tree)
        for kind in ("tiny", "window"):
            subprocess.run([str(tree / "build/dev/bin/paceline_write_gguf"), kind, str(tree / f"{kind}.gguf")], check=True)
        found = judge(tree)
        if found:
            raise SystemExit(f"without a bug the canary already says {found}")
        for name in names:
            path, before, after = MUTANTS[name]
            source = tree / path
            whole = source.read_text(encoding="utf-8")
            if whole.count(before) != 1:
                raise SystemExit(f"{name}: {path} holds the place {whole.count(before)} times, once is wanted")
            source.write_text(whole.replace(before, after), encoding="utf-8")
            build(tree)
            found = judge(tree)
            source.write_text(whole, encoding="utf-8")
            print(f"{'caught  ' if caught(found) else 'SURVIVED'}  {name}: {'; '.join(found) or 'equal'}", flush=True)
            if not caught(found):
                survivors.append(name)
    print(f"{len(names) - len(survivors)} of {len(names)} caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
