"""The program as a user starts it: commands, files, exit codes, signals. Mostly on the toy model."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["PACELINE_PROGRAM"]
WRITE_GGUF = os.environ["PACELINE_WRITE_GGUF"]
VALIDATE = os.environ["PACELINE_VALIDATE"]
SMALL = ["--max-tokens", "12", "-f", "code", "-f", "chat"]
BENCHED = (0, 10, 11, 12)  # 12: timings of a sanitizer build are not judged


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="paceline e2e ")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "XDG_STATE_HOME": self.path("state"), "NO_COLOR": "1"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_program(self, *arguments, stdout=subprocess.PIPE, **more):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=self.environment, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False, **more)

    def bench(self, *arguments, **more):
        return self.run_program("bench", *arguments, **more)

    def gguf(self, kind):
        path = self.path(kind + ".gguf")
        subprocess.run([WRITE_GGUF, kind, path], check=True)
        return path

    def assert_fails(self, run, code, *words):
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        for word in words:
            self.assertIn(word, run.stderr)


class Output(Case):
    def test_the_table_goes_to_stdout_and_the_record_to_the_default_file(self):
        run = self.bench("--target", "toy:7", *SMALL)
        self.assertIn(run.returncode, BENCHED, run.stderr)
        self.assertIn("lookup-3", run.stdout)
        self.assertIn("speed-up", run.stdout)
        with open(self.path("paceline-bench.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["benchmark"], "SPEC-028")

    def test_a_named_file_leaves_stdout_empty(self):
        run = self.bench("--target", "toy:7", *SMALL, "-o", "out.json")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertTrue(os.path.exists(self.path("out.json")))
        self.assertFalse(os.path.exists(self.path("paceline-bench.json")))

    def test_a_dash_prints_json_and_leaves_no_cells_behind(self):
        run = self.bench("--target", "toy:7", *SMALL, "--format", "json", "-o", "-")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        self.assertIn("paceline", json.loads(run.stdout))
        self.assertEqual(os.listdir(self.path("state/paceline")), [])
        self.assertFalse(os.path.exists(self.path("paceline-bench.json")))

    def test_every_format_has_the_result(self):
        for name, sign in [("table", "speed-up"), ("markdown", "|"), ("csv", ","), ("jsonl", '"fixtureID"')]:
            run = self.bench("--target", "toy:7", *SMALL, "--format", name)
            self.assertIn(run.returncode, BENCHED, run.stderr)
            self.assertIn(sign, run.stdout, name)
        run = self.bench("--target", "toy:7", *SMALL, "--jsonl")
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(sorted(line["fixtureID"] for line in lines), ["chat", "code"])
        self.assertTrue(all("host" in line for line in lines))

    def test_tables_fit_the_terminal(self):
        for columns in (60, 80, 132):
            self.environment["COLUMNS"] = str(columns)
            run = self.bench("--target", "toy:7", *SMALL)
            widest = max(len(line) for line in run.stdout.splitlines())
            self.assertLessEqual(widest, columns)

    def test_a_full_disk_behind_stdout_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = self.bench("--target", "toy:7", *SMALL, "--format", "json", "-o", "-", stdout=full)
        self.assertEqual(run.returncode, 3)
        self.assertIn("No space left", run.stderr)
        (record,) = os.listdir(self.path("state/paceline"))
        self.assertIn(f"the record is kept in \"{self.path('state/paceline')}/{record}\"", run.stderr)

    def test_a_full_device_is_an_error_and_the_record_is_kept_elsewhere(self):
        run = self.bench("--target", "toy:7", *SMALL, "-o", "/dev/full")
        self.assert_fails(run, 3, "No space left", "writing \"/dev/full\"")
        (record,) = os.listdir(self.path("state/paceline"))
        self.assertIn(self.path("state/paceline/") + record, run.stderr)
        self.assertNotIn("kept in /dev/full", run.stderr)
        again = self.bench("--target", "toy:7", *SMALL, "--resume", self.path("state/paceline/") + record, "-o", "-")
        self.assertIn(again.returncode, BENCHED, again.stderr)
        self.assertEqual(len(json.loads(again.stdout)["paceline"]["record"]["blocks"]), 16)

    def test_devices_and_stdout_by_name_are_written_into(self):
        run = self.bench("--target", "toy:7", *SMALL, "-o", "/dev/null")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        run = self.bench("--target", "toy:7", *SMALL, "-o", "/dev/stdout")
        self.assertIn("paceline", json.loads(run.stdout))
        self.assertEqual(os.listdir(self.path("state/paceline")), [])

    def test_every_command_says_when_stdout_is_full_or_closed(self):
        commands = (["--help"], ["--version"], ["bench", "--help"], ["models", "fetch", "--help"], ["models"],
                    ["schema"], ["schema", "check"], ["check", "--target", "toy:7"],
                    ["canary", "-t", "toy:7", "--max-tokens", "8", "--format", "json"],
                    ["bench", "-t", "toy:7", *SMALL, "-o", "-"])
        for command in commands:
            with self.subTest(command=command):
                with open("/dev/full", "w", encoding="utf-8") as full:
                    run = self.run_program(*command, stdout=full)
                self.assertEqual(run.returncode, 3, run.stderr)
                self.assertIn("writing the result to stdout: No space left", run.stderr)
                closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, *command], cwd=self.folder,
                                        env=self.environment, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(closed.returncode, 3, closed.stderr)
                self.assertIn("writing the result to stdout: Bad file descriptor", closed.stderr)

    def test_every_sample_drafts_alike_from_cold_state(self):
        prompt = self.write("same.json", json.dumps({"prompt": "one two three one two three one two"}))
        run = self.bench("--target", "toy:7", "-f", prompt, "--baseline-runs", "5", "--max-tokens", "80", "-o", "-")
        blocks = json.loads(run.stdout)["paceline"]["record"]["blocks"]
        drafted = [sum(s["rounds"]["drafted"]) for b in blocks for s in b["samples"] if s["arm"] == "lookup-3"]
        self.assertEqual(len(drafted), 5)
        self.assertEqual(len(set(drafted)), 1)
        self.assertGreater(drafted[0], 0)

    def test_times_of_a_sample_sum_to_its_wall_time(self):
        run = self.bench("--target", "toy:7", "--draft", "toy:7,agree=0.8", *SMALL, "-o", "-")
        for block in json.loads(run.stdout)["paceline"]["record"]["blocks"]:
            self.assertTrue(all(c["equal"] for c in block["comparisons"]))
            for s in block["samples"]:
                parts = sum(sum(s["rounds"][k]) for k in ("draft_ns", "verify_ns", "accept_ns", "other_ns"))
                self.assertEqual(s["elapsed_ns"], s["prefill_ns"] + parts + s["other_ns"])
                self.assertEqual(len(s["tokens"]), 1 + sum(s["rounds"]["emitted"]))


class Documents(Case):
    def check(self, *arguments):
        schema = self.write("schema.json", self.run_program("schema").stdout)
        run = self.bench("--target", "toy:7", *arguments, "-o", "-")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        document = self.write("document.json", run.stdout)
        valid = subprocess.run([VALIDATE, schema, document], capture_output=True, text=True, check=False)
        self.assertEqual(valid.returncode, 0, valid.stderr)
        return json.loads(run.stdout)

    def test_all_kinds_of_runs_fit_the_schema(self):
        self.check(*SMALL)
        self.check(*SMALL, "--draft", "toy:7,agree=0.8", "-n", "2", "-n", "4", "--draft-confidence", "0.1")
        self.check(*SMALL, "--scripted", "0.7", "--temperature", "0.9", "--top-p", "0.9", "--top-k", "40")
        self.check("--quick", "--lookup")

    def test_a_control_run_says_so(self):
        document = self.check(*SMALL, "--control")
        self.assertTrue(document["paceline"]["record"]["plan"]["control"])
        self.assertIn("control_difference", document["paceline"]["evaluation"])

    def test_a_published_fixture_runs_three_times_with_its_own_settings(self):
        document = self.check("-f", "spec028-small-air-streaming-check-v1")
        fixture = document["fixtures"][0]
        self.assertEqual(fixture["request"], {"stream": True, "temperature": 0.0, "topP": 1.0, "maxTokens": 64})
        self.assertEqual(len(fixture["baselineSamples"]), 3)
        self.assertEqual(len(fixture["specSamples"]), 3)
        self.assertIn("ttftMilliseconds", fixture["specSamples"][0])

    def test_a_sustained_window_is_recorded(self):
        document = self.check(*SMALL, "--sustained-seconds", "1", "--last-window-seconds", "0.5")
        self.assertGreater(len(document["paceline"]["record"]["sustained"]["samples"]), 2)

    def test_a_broken_document_does_not_fit(self):
        schema = self.write("schema.json", self.run_program("schema").stdout)
        document = self.check(*SMALL)
        document["paceline"]["record"]["blocks"][0]["status"] = "perhaps"
        broken = self.write("broken.json", json.dumps(document))
        self.assertEqual(subprocess.run([VALIDATE, schema, broken], capture_output=True, check=False).returncode, 1)


class Usage(Case):
    def test_help_and_version_are_there(self):
        self.assertRegex(self.run_program("--version").stdout, r"^\d+\.\d+\.\d+\n$")
        text = self.run_program("bench", "--help").stdout
        for option in ("--target", "--draft", "--num-draft-tokens", "--recommend-ratio-floor", "--policy", "--resume"):
            self.assertIn(option, text)
        for command in ("check", "models", "schema"):
            self.assertEqual(self.run_program(command, "--help").returncode, 0)

    def test_usage_errors_exit_with_2(self):
        self.assert_fails(self.bench("--no-such-option"), 2, "--no-such-option")
        self.assert_fails(self.run_program(), 2)
        self.assert_fails(self.bench("--target", "toy:7", "-n", "17"), 2, "17", "1 to 16")
        self.assert_fails(self.bench("--target", "toy:7", "--baseline-runs", "2", "--spec-runs", "3"), 2, "paired")
        self.assert_fails(self.bench("--target", "toy:7", "--baseline-runs", "0"), 2, "must be > 0")
        self.assert_fails(self.bench("--target", "toy:x"), 2, "\"x\"")
        self.assert_fails(self.bench("--target", "toy:7", "--jsonl", "--format", "csv"), 2, "contradict")
        self.assert_fails(self.bench("--target", "toy:7", "--control", "--lookup"), 2, "--control")
        self.assert_fails(self.bench("--target", "toy:7", "--control", "-n", "2"), 2, "--num-draft-tokens")
        self.assert_fails(self.bench("--target", "toy:7", "-f", "code", "-f", "code"), 2, "twice")
        self.assert_fails(self.bench("--target", "toy:7", "--draft-confidence", "0.5"), 2, "without --draft")

    def test_an_empty_argument_is_one_kind_of_usage_error(self):
        for command in (["bench", "-o", ""], ["bench", "-t", ""], ["bench", "--target="], ["bench", "-d", ""],
                        ["bench", "-f", ""], ["bench", "--policy", ""], ["bench", "--resume", ""],
                        ["bench", "--format", ""], ["bench", "--temperature", ""], ["bench", "--memory-limit", ""],
                        ["canary", "-d", ""], ["check", "--target", ""], ["check", ""], ["models", "verify", ""],
                        ["schema", ""], [""]):
            with self.subTest(command=command):
                self.assert_fails(self.run_program(*command), 2, " is empty; ")
        self.assertEqual(os.listdir(self.folder), [])

    def test_an_unknown_command_is_named_with_the_nearest(self):
        self.assert_fails(self.run_program("nonsense"), 2, "\"nonsense\"", "known are bench", "paceline --help")
        self.assert_fails(self.run_program("benhc", "-t", "toy:7"), 2, "did you mean \"bench\"?")
        self.assert_fails(self.run_program("models", "ftch", "x"), 2, "did you mean \"fetch\"?", "models --help")
        self.assertNotIn("probe-vocabulary", self.run_program("nonsense").stderr)

    def test_a_number_that_is_none_is_refused_by_every_command(self):
        for value in ("nan", "-nan", "inf", "1e999"):
            for command in (["bench", "--scripted"], ["bench", "--time-limit"], ["bench", "--recommend-ratio-floor"],
                            ["bench", "--top-p"], ["bench", "--baseline-runs"], ["canary", "--temperature"],
                            ["canary", "--time-limit"], ["canary", "--threads"], ["check", "--max-context-tokens"],
                            ["check", "--memory-limit"]):
                with self.subTest(command=command, value=value):
                    self.assert_fails(self.run_program(*command, value), 2, command[1], value)

    def test_more_runs_than_anybody_waits_for_are_refused(self):
        for count in ("1001", "100000000", "18446744073709551615"):
            self.assert_fails(self.bench("-t", "toy:7", "--baseline-runs", count), 2, count, "1000")
            self.assert_fails(self.bench("-t", "toy:7", "--spec-runs", count), 2, count, "1000")

    def test_models_are_listed_with_licences(self):
        text = self.run_program("models").stdout
        self.assertIn("smollm2-135m", text)
        self.assertIn("Apache-2.0", text)

    def test_a_policy_file_moves_the_floor_and_is_checked(self):
        policy = self.write("policy.yaml", "ratio_floor: 0.001234\n")
        self.assert_fails(self.bench("--target", "toy:7", "--policy", policy), 3, "ratio_floor", "0.01")
        policy = self.write("policy.yaml", "ratio_flor: 1\n")
        self.assert_fails(self.bench("--target", "toy:7", "--policy", policy), 3, "ratio_flor", "latency_guard")
        policy = self.write("policy.json", '{"ratio_floor": 0.25}')
        run = self.bench("--target", "toy:7", *SMALL, "--policy", policy, "-o", "-")
        self.assertEqual(json.loads(run.stdout)["paceline"]["evaluation"]["policy"]["ratio_floor"], 0.25)


class BadInput(Case):
    def test_a_pipe_a_device_or_a_folder_is_no_file(self):
        """A pipe without a writer: whoever waits for it is caught by the time limit of run_program."""
        os.mkfifo(self.path("pipe"))
        self.write("prompts.txt", "one two three")
        for path, kind in (("pipe", "a pipe"), ("/dev/zero", "a character device"), (".", "a folder")):
            for command in (["bench", "-t", "toy:7", "-f", path if "/" in path else f"./{path}"],
                            ["bench", "-t", "toy:7", "--policy", path], ["bench", "-t", "toy:7", "--resume", path]):
                with self.subTest(command=command):
                    self.assert_fails(self.run_program(*command), 3, path, kind, "a regular file is wanted")
        for command in (["bench", "-t", "toy:7", "-f", "prompts.txt", "-o", "pipe"],
                        ["bench", "-t", "toy:7", "-f", "prompts.txt", "--format", "csv", "-o", "pipe"]):
            self.assert_fails(self.run_program(*command), 3, "\"pipe\" is a pipe")
        for command in (["bench", "-t", "./pipe"], ["canary", "-t", "./pipe"], ["check", "--target", "./pipe"],
                        ["models", "verify", "./pipe"]):
            run = self.run_program(*command)
            self.assertIn(run.returncode, (3, 12), run.stderr)
            self.assertIn("pipe", run.stderr + run.stdout)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))

    def test_unknown_fixtures_list_the_known_names(self):
        run = self.bench("--target", "toy:7", "-f", "no-such-fixture")
        self.assertIn(run.returncode, (2, 3))
        self.assertIn("multilingual", run.stderr)

    def test_an_empty_prompt_file_is_named(self):
        empty = self.write("empty.txt", " \n")
        self.assert_fails(self.bench("--target", "toy:7", "-f", empty), 3, "empty.txt")

    def test_a_broken_line_is_numbered(self):
        broken = self.write("p.jsonl", '{"prompt": "one"}\n{"prompt": 2}\n')
        self.assert_fails(self.bench("--target", "toy:7", "-f", broken), 3, "p.jsonl", "2")

    def test_a_missing_target_is_named(self):
        self.assert_fails(self.bench("--target", "./none.gguf"), 3, "none.gguf")
        self.assert_fails(self.bench("--target", self.folder), 3, "folder")

    def test_an_unknown_model_name_lists_the_known_ones(self):
        run = self.bench("--target", "no-such-model", "--offline")
        self.assertIn(run.returncode, (2, 3))
        self.assertIn("smollm2-135m", run.stderr)

    def test_a_result_does_not_replace_an_input(self):
        prompts = self.write("prompts.jsonl", '{"id": "a", "prompt": "one two three"}\n')
        with open(prompts, encoding="utf-8") as file:
            before = file.read()
        for form in ([], ["--format", "csv"]):
            run = self.bench("--target", "toy:7", "--lookup", "-f", prompts, "-o", "./prompts.jsonl", *form)
            self.assert_fails(run, 2, "would replace", "prompts.jsonl")
        with open(prompts, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)

    def test_a_missing_output_folder_is_found_before_the_run(self):
        self.assert_fails(self.bench("--target", "toy:7", "-o", "no/such/folder/x.json"), 3, "no/such/folder")
        self.assert_fails(self.bench("--target", "toy:7", "-o", self.folder), 3, "folder")

    def test_a_prompt_longer_than_the_context_is_skipped_with_its_counts(self):
        prompt = self.write("long.txt", "word " * 100)
        run = self.bench("--target", "toy:7", "-f", prompt, "--max-context-tokens", "64", "-o", "-")
        self.assertEqual(run.returncode, 12, run.stderr)
        block = json.loads(run.stdout)["paceline"]["record"]["blocks"][0]
        self.assertEqual(block["status"], "skipped")
        self.assertIn("64", block["reason"])


class Gguf(Case):
    """Small generated files through libllama."""

    def test_a_gguf_cut_in_half_is_refused_with_both_sizes(self):
        run = self.bench("--target", self.gguf("cut"))
        self.assert_fails(run, 3, "cut.gguf")
        self.assertRegex(run.stderr, r"\d+.*\d+")

    def test_a_draft_with_other_words_is_refused(self):
        run = self.bench("--target", self.gguf("tiny"), "--draft", self.gguf("other-words"), *SMALL)
        self.assert_fails(run, 12, "token 264", "target", "draft", "draft_model_tokenizer_mismatch")

    def test_a_padded_draft_is_accepted(self):
        run = self.bench("--target", self.gguf("tiny"), "--draft", self.gguf("padded"), "-f",
                         self.write("p.txt", "a b c"), "--max-tokens", "8")
        self.assertIn(run.returncode, BENCHED, run.stderr)

    def test_a_recurrent_target_is_refused_for_speculation(self):
        run = self.bench("--target", self.gguf("recurrent"), "-f", self.write("p.txt", "a b a b a b"), "--lookup")
        self.assertEqual(run.returncode, 12, run.stderr)
        self.assertIn("take", run.stderr)

    def test_a_sliding_window_target_writes_the_same_past_its_window(self):
        prompt = self.write("p.txt", "ab ab ab ab ab ab")
        run = self.bench("--target", self.gguf("window"), "-f", prompt, "--scripted", "0.5", "--max-tokens", "60", "-o", "-")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        block = json.loads(run.stdout)["paceline"]["record"]["blocks"][0]
        self.assertEqual(block["status"], "ok", block["reason"])
        self.assertTrue(block["comparisons"][0]["equal"])

    def test_a_file_that_is_no_gguf_is_refused(self):
        path = self.write("text.gguf", "this is text")
        self.assert_fails(self.bench("--target", path), 3, "text.gguf")


class Inflate(Case):
    """`paceline models inflate`."""

    def inflate(self, *arguments):
        return self.run_program("models", "inflate", *arguments)

    def test_an_inflated_model_is_named_as_such_in_record_and_table(self):
        source = self.gguf("tiny")
        run = self.inflate(source, "--shape", "source", "--type", "F16", "--noise", "0.25", "--seed", "7", "-o",
                           self.path("big.gguf"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, self.path("big.gguf") + "\n")
        with open(source, "rb") as file:
            sha256 = hashlib.sha256(file.read()).hexdigest()
        for runtime in ("llama", "native"):
            run = self.bench("--target", self.path("big.gguf"), "--draft", source, *SMALL, "--runtime", runtime)
            self.assertIn(run.returncode, BENCHED, run.stderr)
            self.assertIn("tiny inflated to source, noise 0.25", " ".join(run.stdout.split()))
            with open(self.path("paceline-bench.json"), encoding="utf-8") as file:
                environment = json.load(file)["paceline"]["record"]["environment"]
            self.assertEqual(environment["target"]["inflation"], {
                "source": "tiny", "source_sha256": sha256, "shape": "source", "noise": 0.25, "random": False, "seed": 7})
            self.assertIsNone(environment["drafts"][0]["inflation"])

    def test_random_weights_are_warned_of(self):
        run = self.inflate(self.gguf("tiny"), "--shape", "source", "--random", "-o", self.path("random.gguf"))
        self.assertEqual(run.returncode, 0, run.stderr)
        run = self.bench("--target", self.path("random.gguf"), *SMALL)
        self.assertIn("random weights", run.stdout)

    def test_what_cannot_be_inflated_is_refused(self):
        source = self.gguf("tiny")
        there = self.write("there.gguf", "mine")
        self.assert_fails(self.inflate(source, "--shape", "7b", "-o", there), 2, "there.gguf", "exists")
        self.assert_fails(self.inflate(source, "--shape", "9b", "-o", self.path("x.gguf")), 2, "9b", "7b")
        self.assert_fails(self.inflate(source, "-o", self.path("x.gguf")), 2, "--shape")
        self.assert_fails(self.inflate(self.gguf("window"), "--shape", "7b", "-o", self.path("x.gguf")), 3, "gemma2")
        self.assert_fails(self.inflate("no-such-model", "--shape", "7b", "-o", self.path("x.gguf")), 3, "no-such-model")
        self.assertFalse(os.path.exists(self.path("x.gguf")))

    def test_help_teaches(self):
        run = self.inflate("--help")
        self.assertEqual(run.returncode, 0)
        for word in ("--shape", "--noise", "--random", "Q4_K_M", "draft.gguf"):
            self.assertIn(word, run.stdout)


class Check(Case):
    """`paceline check`: pairs, folders, artifacts, damaged files."""

    def check(self, *arguments, **more):
        return self.run_program("check", *arguments, **more)

    def document(self, *arguments, code=0):
        schema = self.write("schema.json", self.run_program("schema", "check").stdout)
        run = self.check(*arguments, "--format", "json")
        self.assertEqual(run.returncode, code, run.stderr)
        document = self.write("document.json", run.stdout)
        valid = subprocess.run([VALIDATE, schema, document], capture_output=True, text=True, check=False)
        self.assertEqual(valid.returncode, 0, valid.stderr)
        return json.loads(run.stdout)

    def snapshot(self, name, **files):
        os.makedirs(self.path(name))
        for file, text in {"tokenizer_config": "{}", "tokenizer": '{"model":{"vocab":{"a":0}}}', **files}.items():
            self.write(f"{name}/{file}.json", text)
        return self.path(name)

    def test_a_model_may_draft_for_itself(self):
        tiny = self.gguf("tiny")
        run = self.check("--target", tiny, "--draft", tiny)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Yes.", run.stdout)
        self.assertEqual(run.stderr, "")
        document = self.document("--target", tiny, "--draft", self.gguf("small"))
        self.assertEqual(document["result"], "usable")
        self.assertTrue(document["probe"]["run"])
        self.assertIsNone(document["code"])

    def test_a_toy_has_its_own_runtime(self):
        for command in ("check", "canary", "bench"):
            for runtime in ("llama", "native"):
                run = self.run_program(command, "--target", "toy:1", "--runtime", runtime)
                self.assert_fails(run, 2, "toy:1", f"--runtime {runtime}")

    def test_toys_are_checked_without_files(self):
        self.assertEqual(self.document("--target", "toy:7", "--draft", "toy:7,agree=0.8")["result"], "usable")
        refused = self.document("--target", "toy:7", "--draft", "toy:7,vocab=64", code=12)
        self.assertEqual(refused["code"], "draft_model_tokenizer_mismatch")

    def test_other_words_are_refused_with_the_first_difference(self):
        document = self.document("--target", self.gguf("tiny"), "--draft", self.gguf("other-words"), code=12)
        self.assertEqual(document["code"], "draft_model_tokenizer_mismatch")
        first = document["differences"][0]
        self.assertEqual(first["component"], "token_texts")
        self.assertEqual(first["first_token"]["id"], 264)
        self.assertEqual(first["severity"], "hard")
        run = self.check("--target", self.gguf("tiny"), "--draft", self.gguf("other-words"))
        self.assertEqual(run.returncode, 12)
        self.assertIn("token 264", run.stdout)

    def test_padding_and_flags_are_reported_and_allowed(self):
        padded = self.document("--target", self.gguf("tiny"), "--draft", self.gguf("padded"))
        self.assertIn(("vocabulary_size", "cosmetic"), [(d["component"], d["severity"]) for d in padded["differences"]])
        flag = self.document("--target", self.gguf("tiny"), "--draft", self.gguf("no-begin"))
        self.assertEqual([d["component"] for d in flag["differences"] if d["severity"] == "soft"][:2],
                         ["add_bos_token", "added_tokens"])

    def test_recurrent_models_and_encoders_are_refused_in_either_role(self):
        tiny, recurrent, encoder = self.gguf("tiny"), self.gguf("recurrent"), self.gguf("encoder")
        self.assertEqual(self.document("--target", recurrent, code=12)["code"], "target_no_rollback")
        self.assertEqual(self.document("--target", tiny, "--draft", recurrent, code=12)["code"], "draft_model_no_rollback")
        self.assertEqual(self.document("--target", encoder, code=12)["code"], "target_writes_no_text")

    def test_damaged_files_are_named_with_a_reason(self):
        self.assert_fails(self.check("--target", self.gguf("cut")), 3, "cut.gguf", "is cut")
        self.assert_fails(self.check("--target", self.gguf("tiny"), "--draft", self.gguf("cut")), 3, "cut.gguf")
        self.assert_fails(self.check("--target", self.write("text.gguf", "text")), 3, "text.gguf", "GGUF")
        self.assert_fails(self.check("--target", "./none.gguf"), 3, "none.gguf")
        self.assert_fails(self.check("--target", self.gguf("odd-tokenizer")), 3, "odd-tokenizer.gguf", "no such tokenizer")

    def test_an_abort_of_the_library_ends_its_child_only(self):
        twice = self.gguf("twice")  # two tokens of one text, which libllama 0.7 asserts against
        self.assert_fails(self.check("--target", twice), 3, "twice.gguf", "broke off", "GGML_ASSERT")
        self.gguf("tiny")
        run = self.check(self.folder)
        self.assertEqual(run.returncode, 12, run.stderr)
        self.assertIn("broke off", run.stdout)
        self.assertIn("1 candidates", run.stdout)

    def test_the_child_answers_for_one_file(self):
        run = self.run_program("probe-vocabulary", self.gguf("tiny"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(json.loads(run.stdout)["ends"]), 2)
        self.assert_fails(self.run_program("probe-vocabulary", self.gguf("cut")), 3, "cut.gguf")
        self.assertNotIn("probe-vocabulary", self.run_program("--help").stdout)

    def test_usage_errors_exit_with_2_and_their_words(self):
        tiny = self.gguf("tiny")
        self.assert_fails(self.check(), 2, "--target")
        self.assert_fails(self.check("--draft", tiny), 2, "draft_model_target_required")
        self.assert_fails(self.check("--target", tiny, self.folder), 2, "not both")
        self.assert_fails(self.check("--target", tiny, "--format", "xml"), 2, "xml")
        digest = "--draft-model-artifact-sha256"
        self.assert_fails(self.check("--target", tiny, digest, "a" * 64), 2, "--draft")
        self.assert_fails(self.check("--target", tiny, "--draft", tiny, digest, "A" * 64), 2, "64 lowercase hex characters")

    def test_an_artifact_is_bound_by_its_hash(self):
        tiny = self.gguf("tiny")
        with open(tiny, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        option = "--draft-model-artifact-sha256"
        self.assertEqual(self.document("--target", tiny, "--draft", tiny, option, digest)["draft_artifact_sha256"], digest)
        wrong = self.check("--target", tiny, "--draft", tiny, option, "0" * 64)
        self.assert_fails(wrong, 2, "draft_model_unverified_artifact", digest)
        toy = self.check("--target", "toy:7", "--draft", "toy:7", option, digest)
        self.assert_fails(toy, 2, "draft_model_unverified_artifact")

    def test_snapshots_are_compared_by_the_published_fingerprint(self):
        ours, same = self.snapshot("a"), self.snapshot("b", tokenizer_config='{"chat_template": "x"}')
        usable = self.document("--target", ours, "--draft", same)
        self.assertEqual(usable["target"]["fingerprint"]["sha256"], usable["draft"]["fingerprint"]["sha256"])
        other = self.snapshot("c", tokenizer_config='{"eos_token": "</s>"}')
        refused = self.document("--target", ours, "--draft", other, code=12)
        self.assertEqual(refused["code"], "draft_model_tokenizer_mismatch")
        self.assertIn("eos_token", refused["differences"][0]["message"])

    def test_a_folder_is_explained_candidate_by_candidate(self):
        for kind in ("tiny", "small", "other-words", "recurrent", "cut"):
            self.gguf(kind)
        self.snapshot("snap")
        document = self.document(self.folder)
        usable = [(p["target"], p["draft"]) for p in document["pairs"] if p["result"] == "usable"]
        self.assertEqual(usable, [("tiny.gguf", "small.gguf")])
        by_name = {c["name"]: c for c in document["candidates"]}
        self.assertIn("is cut", by_name["cut.gguf"]["error"])
        self.assertFalse(by_name["recurrent.gguf"]["may_be_target"])
        self.assertEqual(by_name["snap"]["candidate"]["kind"], "snapshot")
        os.makedirs(self.path("empty"))
        self.assert_fails(self.check(self.path("empty")), 3, "holds no GGUF file")
        self.assert_fails(self.check(self.path("none")), 3, "none")

    def test_a_full_disk_behind_stdout_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(self.check("--target", "toy:7", stdout=full).returncode, 3)


class Damaged(Case):
    """Files whose headers are fine and that nothing can run: none ends the program that was asked."""

    @classmethod
    def setUpClass(cls):
        listed = subprocess.run([WRITE_GGUF, "damages"], capture_output=True, text=True, check=True)
        cls.kinds = listed.stdout.split()

    def test_check_does_not_say_yes_to_what_no_runtime_can_load(self):
        self.assertGreater(len(self.kinds), 30)
        for kind in self.kinds:
            with self.subTest(kind=kind):
                run = self.run_program("check", "--target", self.gguf(kind))
                self.assert_fails(run, 3, f"{kind}.gguf")
                self.assertEqual(run.stderr.count("\n"), 1, run.stderr)

    def test_a_draft_is_looked_at_as_well(self):
        tiny = self.gguf("tiny")
        for kind in ("no-query", "layers-3", "epsilon-nan"):
            self.assert_fails(self.run_program("check", "--target", tiny, "--draft", self.gguf(kind)), 3, f"{kind}.gguf")

    def test_a_folder_lists_them_with_their_reasons(self):
        for kind in self.kinds:
            self.gguf(kind)
        run = self.run_program("check", self.folder, "--format", "json")
        self.assertEqual(run.returncode, 12, run.stderr)
        document = json.loads(run.stdout)
        self.assertEqual(len(document["candidates"]), len(self.kinds))
        for candidate in document["candidates"]:
            with self.subTest(candidate=candidate["name"]):
                self.assertFalse(candidate["may_be_target"])
                self.assertIsNone(candidate["candidate"])
                self.assertGreater(len(candidate["error"]), 20)
        self.assertNotIn("target   yes", self.run_program("check", self.folder).stdout)

    def test_bench_and_canary_end_with_the_reason(self):
        prompt = self.write("p.txt", "a b a b")
        for kind in self.kinds:
            path = self.gguf(kind)
            for runtime in ("llama", "native"):
                with self.subTest(kind=kind, runtime=runtime):
                    self.assert_fails(self.run_program("canary", "--target", path, "--runtime", runtime), 3, f"{kind}.gguf")
        for kind in ("integer-up", "epsilon-nan", "layers-0", "twice", "no-query", "nan-output"):
            path = self.gguf(kind)
            for runtime in ("auto", "llama", "native"):
                with self.subTest(kind=kind, runtime=runtime):
                    self.assert_fails(self.bench("--target", path, "--runtime", runtime, "-f", prompt), 3, f"{kind}.gguf")

    def test_damage_is_named_by_its_tensor_or_key(self):
        for kind, words in {"no-query": "blk.0.attn_q.weight", "integer-up": "blk.0.ffn_up.weight",
                            "epsilon-nan": "attention.layer_norm_rms_epsilon is nan",
                            "nan-query": "blk.0.attn_q.weight", "infinite-output": "output.weight"}.items():
            with self.subTest(kind=kind):
                self.assert_fails(self.run_program("check", "--target", self.gguf(kind)), 3, words)

    def test_logits_that_are_no_numbers_end_the_run(self):
        path = self.gguf("overflow")
        prompt = self.write("p.txt", "a b a b")
        for runtime in ("llama", "native"):
            words = ("logits_not_finite", "overflow.gguf", "position", f"the runtime {runtime}")
            with self.subTest(runtime=runtime):
                self.assert_fails(self.run_program("canary", "--target", path, "--runtime", runtime), 3, *words)
                self.assert_fails(self.bench("--target", path, "--runtime", runtime, "-f", prompt), 3, *words)
        draft = ["--target", self.gguf("tiny"), "--draft", path]
        self.assert_fails(self.run_program("canary", *draft), 3, "logits_not_finite", "overflow.gguf")
        self.assert_fails(self.bench(*draft, "-f", prompt), 3, "logits_not_finite", "overflow.gguf")


class Terminal(Case):
    """Nothing that others wrote reaches the terminal as a command."""
    NAME = "a\x1b[31mred\nno\u009b2J"

    def assert_plain(self, text):
        self.assertFalse([c for c in text if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")], repr(text))

    def test_names_of_files_are_escaped(self):
        os.rename(self.gguf("tiny"), self.path(self.NAME + ".gguf"))
        os.rename(self.gguf("cut"), self.path(self.NAME + "cut.gguf"))
        self.gguf("small")
        whole = self.path(self.NAME + ".gguf")
        for arguments in (["check", self.folder], ["check", "--target", whole], ["check", "--target", whole + "x"],
                          ["check", "--target", self.path(self.NAME + "cut.gguf")],
                          ["check", "--target", whole, "--draft", self.path("small.gguf")],
                          ["canary", "--target", whole, "-n", "1", "--max-tokens", "8"],
                          ["bench", "--target", whole, "-f", self.write("p.txt", "a b a b"), "--max-tokens", "8"]):
            run = self.run_program(*arguments)
            with self.subTest(arguments=arguments[0:2]):
                self.assertIn(run.returncode, (0, 3, 10, 11, 12), run.stderr)
                self.assert_plain(run.stdout)
                self.assert_plain(run.stderr)
                self.assertIn("\\x1b[31mred\\nno\\x9b2J", run.stdout + run.stderr)


class Memory(Case):
    """The estimate of `check`, and what `bench` makes of it."""

    def check(self, *arguments):
        run = self.run_program("check", *arguments, "--format", "json")
        return run, json.loads(run.stdout)["memory"]

    def test_the_sums_are_shown_and_add_up(self):
        target = self.gguf("tiny")
        run, memory = self.check("--target", target, "--draft", target)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(memory["fit"], "fits")
        host = memory["devices"][0]
        parts = [m["devices"][0] for m in memory["models"]]
        names = ("weights_bytes", "kv_bytes", "compute_bytes", "results_bytes")
        held = [sum(part[name] for name in names) for part in parts]
        self.assertEqual(host["plain_bytes"], memory["program_bytes"] + held[0])
        self.assertEqual(host["pair_bytes"], memory["program_bytes"] + sum(held))
        self.assertEqual(parts[1]["weights_bytes"], 0, "one copy of the weights is enough")
        self.assertGreater(parts[0]["kv_bytes"], 0)
        text = self.run_program("check", "--target", target).stdout
        self.assertIn("fits: ", text)
        self.assertIn("longest context that fits", text)

    def test_another_machines_memory_can_be_asked_for(self):
        target = self.gguf("tiny")
        run, memory = self.check("--target", target, "--memory-limit", "1MiB")
        self.assertEqual(run.returncode, 12, run.stderr)
        self.assertEqual(memory["fit"], "does_not_fit")
        self.assertEqual(memory["largest_context"], 0)
        self.assertEqual(memory["devices"][0]["free_bytes"], 1 << 20)
        needs = memory["devices"][0]["pair_bytes"]
        run, memory = self.check("--target", target, "--memory-limit", str(needs * 4))
        self.assertEqual((run.returncode, memory["fit"]), (0, "fits"))

    def test_a_target_that_does_not_fit_is_not_benchmarked_and_says_why(self):
        target = self.gguf("tiny")
        run = self.bench("--target", target, "--lookup", *SMALL, "--memory-limit", "1MiB", "-o", "out.json")
        self.assertEqual(run.returncode, 12, run.stderr)
        with open(self.path("out.json"), encoding="utf-8") as file:
            document = json.load(file)
        record = document["paceline"]["record"]
        self.assertEqual([o["word"] for o in record["obstacles"]], ["does_not_fit"] * 2)
        self.assertIn("usable on host", record["obstacles"][1]["reason"])
        self.assertEqual(record["blocks"], [])
        text = self.bench("--target", target, "--lookup", *SMALL, "--memory-limit", "1MiB").stdout
        self.assertIn("Not benchmarkable", text)
        self.assertIn("does not fit", text)

    def test_a_draft_context_over_the_published_cap_is_a_usage_error(self):
        run = self.bench("--target", "toy:7,context=400000", "--draft", "toy:7,agree=0.8", *SMALL,
                         "--max-context-tokens", "300000")
        self.assert_fails(run, 2, "draft_model_capacity_shortfall")

    def test_an_amount_that_is_none_is_named(self):
        self.assert_fails(self.run_program("check", "--target", "toy:7", "--memory-limit", "much"), 2, "much")


class LongRun(Case):
    # some seconds of work on the toy model
    LONG = ["--target", "toy:7,context=65536", "--max-tokens", "4000", "--temperature", "1", "-f", "code", "-f", "chat",
            "--baseline-runs", "4"]

    def blocks(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)["paceline"]["record"]["blocks"]
        except FileNotFoundError:
            return []

    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, "bench", *arguments], cwd=self.folder, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_blocks(self, process, name, count):
        while process.poll() is None and len(self.blocks(name)) < count:
            time.sleep(0.02)
        return self.blocks(name)


class Resume(LongRun):
    def test_a_killed_run_keeps_its_blocks_and_continues(self):
        process = self.start(*self.LONG, "-o", "r.json")
        self.wait_for_blocks(process, "r.json", 3)
        process.kill()
        process.communicate()
        kept = self.blocks("r.json")
        self.assertGreaterEqual(len(kept), 3)
        run = self.bench(*self.LONG, "--resume", "r.json", "-o", "r.json")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        finished = self.blocks("r.json")
        self.assertGreater(len(finished), len(kept))
        self.assertEqual(finished[: len(kept)], kept)
        self.assertEqual(len({(b["fixture"], b["prompt"], b["repetition"]) for b in finished}), len(finished))

    def test_a_resumed_run_keeps_its_sustained_window(self):
        first = ["--target", "toy:7", *SMALL, "-o", "r.json"]
        self.assertIn(self.bench(*first, "--sustained-seconds", "0.2").returncode, BENCHED)
        self.assertIn(self.bench(*first, "--resume", "r.json").returncode, BENCHED)
        with open(self.path("r.json"), encoding="utf-8") as file:
            self.assertIsNotNone(json.load(file)["paceline"]["record"]["sustained"])

    def test_other_settings_are_refused_by_name(self):
        first = ["--target", "toy:7", *SMALL, "-o", "r.json"]
        self.assertIn(self.bench(*first).returncode, BENCHED)
        before = self.blocks("r.json")
        self.assert_fails(self.bench(*first, "--resume", "r.json", "-n", "5"), 2, "arms")
        self.assert_fails(self.bench(*first, "--resume", "r.json", "--seed", "5"), 2, "seed")
        self.assertEqual(self.blocks("r.json"), before)

    def test_a_file_that_is_no_record_is_refused(self):
        self.write("r.json", "{}")
        self.assert_fails(self.bench("--target", "toy:7", "--resume", "r.json"), 3, "r.json")


class Records(LongRun):
    """Nothing that was measured is lost without being asked for, and no other file is replaced."""

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def names(self):
        """What is in the folder; a killed run may leave a file that it was writing."""
        return sorted(name for name in os.listdir(self.folder) if not name.endswith(".tmp"))

    def broken_off(self, name):
        """A record of a killed run. Gives its text."""
        process = self.start(*self.LONG, "-o", name)
        self.wait_for_blocks(process, name, 2)
        process.kill()
        process.communicate()
        self.assertGreaterEqual(len(self.blocks(name)), 2)
        return self.read(name)

    def test_a_file_of_another_kind_is_refused_before_anything_is_loaded(self):
        for name, text in (("notes.txt", "Dear diary\n"), ("other.json", '{"a": 1}'), ("cells.csv", "a,b\n1,2\n")):
            self.write(name, text)
            for form in ([], ["--format", "table"], ["--format", "markdown"], ["--format", "csv"], ["--jsonl"]):
                run = self.bench("--target", "./no-such.gguf", "-o", name, *form)
                self.assert_fails(run, 2, name, text[:3].replace('"', '\\"'), "remove it", "-o")
                self.assertEqual(self.read(name), text)
        self.write("paceline-bench.json", "mine")
        self.assert_fails(self.bench("--target", "toy:7", *SMALL), 2, "paceline-bench.json", "mine")
        self.assertEqual(self.read("paceline-bench.json"), "mine")

    def test_results_of_the_same_format_replace_each_other(self):
        for form in ("json", "csv", "jsonl", "markdown", "table"):
            run = ["--target", "toy:7", *SMALL, "--format", form, "-o", "out"]
            self.write("out", "")
            for _ in range(2):
                again = self.bench(*run)
                self.assertIn(again.returncode, BENCHED, again.stderr)
                self.assertEqual(self.names(), ["out"] if form == "json" else ["out", "state"])
            other = "csv" if form == "json" else "json"
            self.assert_fails(self.bench(*run[:-4], "--format", other, "-o", "out"), 2, "out", other)

    def test_a_run_that_measures_nothing_leaves_a_record_that_was_broken_off(self):
        before = self.broken_off("r.json")
        for failing in (["-t", "./no-such.gguf"], ["-t", "toy:7", "--temperature", "nan"],
                        ["-t", "toy:7,context=100", "--max-context-tokens", "200"]):
            self.assertIn(self.bench(*failing, "-o", "r.json").returncode, (2, 3))
            self.assertEqual(self.read("r.json"), before)
        run = self.bench("-t", "toy:7", "--max-context-tokens", "2", "-o", "r.json")
        self.assertEqual(run.returncode, 12, run.stderr)
        self.assertEqual(self.blocks("r.json")[0]["status"], "skipped")
        self.assertIn("r.json.earlier-1", run.stderr)
        self.assertEqual(self.read("r.json.earlier-1"), before)
        resumed = self.bench(*self.LONG, "--resume", "r.json.earlier-1", "-o", "r2.json")
        self.assertIn(resumed.returncode, BENCHED, resumed.stderr)

    def test_the_default_record_that_was_broken_off_is_moved_aside_by_the_next_run(self):
        before = self.broken_off("paceline-bench.json")
        run = self.bench("--target", "toy:7", *SMALL)
        self.assertIn(run.returncode, BENCHED, run.stderr)
        self.assertIn("--resume paceline-bench.json", run.stderr)
        self.assertEqual(self.read("paceline-bench.json.earlier-1"), before)
        self.assertTrue(json.loads(self.read("paceline-bench.json"))["paceline"]["record"]["complete"])
        self.assertIn(self.bench("--target", "toy:7", *SMALL).returncode, BENCHED)
        self.assertEqual(self.names(), ["paceline-bench.json", "paceline-bench.json.earlier-1"])

    def test_a_second_run_on_the_same_file_is_refused(self):
        process = self.start(*self.LONG, "-o", "r.json")
        self.wait_for_blocks(process, "r.json", 1)
        for form in ([], ["--format", "csv"]):
            self.assert_fails(self.bench("--target", "toy:8", *SMALL, "-o", "r.json", *form), 3, "another run", "r.json")
        self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        self.assertTrue(os.path.exists(self.path("r.json.lock")))
        run = self.bench(*self.LONG, "--resume", "r.json", "-o", "r.json")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        self.assertEqual(self.names(), ["r.json"])

    def test_another_format_does_not_replace_the_record_that_is_continued(self):
        before = self.broken_off("r.json")
        run = self.bench(*self.LONG, "--format", "csv", "-o", "./r.json", "--resume", "r.json")
        self.assert_fails(run, 2, "csv", "./r.json", "--resume \"r.json\"")
        self.assertEqual(self.read("r.json"), before)
        run = self.bench(*self.LONG, "--format", "csv", "-o", "r.csv", "--resume", "r.json")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        self.assertIn("phase,fixture", self.read("r.csv"))
        self.assertGreater(len(self.blocks("r.json")), len(json.loads(before)["paceline"]["record"]["blocks"]))

    def test_the_record_to_continue_is_read_before_a_model_is_loaded(self):
        self.write("r.json", "{}")
        self.assert_fails(self.bench("--target", "./none.gguf", "--resume", "r.json"), 3, "r.json", "no result")
        self.assertIn(self.bench("--target", "toy:7", *SMALL, "-o", "s.json").returncode, BENCHED)
        run = self.bench("--target", "./none.gguf", *SMALL, "--resume", "s.json", "--seed", "5", "-o", "t.json")
        self.assert_fails(run, 2, "s.json", "seed")


class Interruption(LongRun):
    def test_ctrl_c_keeps_the_finished_blocks(self):
        process = self.start(*self.LONG, "-o", "r.json")
        self.wait_for_blocks(process, "r.json", 2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("--resume", errors)
        self.assertGreaterEqual(len(self.blocks("r.json")), 2)

    def test_a_time_limit_ends_the_run_with_what_it_has(self):
        run = self.bench(*self.LONG, "--time-limit", "0.001", "-o", "r.json")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        with open(self.path("r.json"), encoding="utf-8") as file:
            record = json.load(file)["paceline"]["record"]
        self.assertFalse(record["complete"])
        self.assertIn("time limit", record["incomplete_reason"])
        self.assertTrue(all(b["status"] == "ok" for b in record["blocks"]))


class Plan(Case):
    """The cost curve of a pass."""

    def plan(self, *arguments, **more):
        return self.run_program("plan", *arguments, "--repeats", "2", **more)

    def document(self, *arguments):
        run = self.plan(*arguments, "--format", "json")
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("plan.schema.json"), "w", encoding="utf-8") as file:
            file.write(self.run_program("schema", "plan").stdout)
        document = self.write("plan.json", run.stdout)
        valid = subprocess.run([VALIDATE, self.path("plan.schema.json"), document], capture_output=True, text=True, check=False)
        self.assertEqual(valid.returncode, 0, valid.stderr)
        return json.loads(run.stdout)

    def test_both_runtimes_are_measured_side_by_side(self):
        tiny = self.gguf("tiny")
        document = self.document("--target", tiny, "--draft", tiny, "--runtime", "native", "--runtime", "llama",
                                 "--rows", "1,3", "--context", "8,40")
        self.assertEqual([(c["runtime"]["name"], c["context"]) for c in document["curves"]],
                         [("native", 8), ("llama", 8), ("native", 40), ("llama", 40)])
        for curve in document["curves"]:
            self.assertEqual([len(p["ms_by_repeat"]) for p in curve["points"]], [2, 2])
            self.assertGreater(curve["draft_token_cost"], 0)
        self.assertEqual(len(document["runtime_ratios"]), 4)
        self.assertGreater(document["ceilings"][0]["read_bytes_per_second"], 1e6)
        self.assertGreater(document["pass_work"]["body_multiply_adds_per_row"], 0)
        table = self.plan("--target", tiny, "--rows", "1,2")
        self.assertIn("native", table.stdout)
        self.assertIn("pays at", table.stdout)

    def test_an_instruction_set_and_numbers_of_threads_can_be_asked_for(self):
        document = self.document("--target", self.gguf("tiny"), "--rows", "1", "--isa", "scalar", "--threads", "1,2")
        self.assertEqual([(c["isa"], c["threads"]) for c in document["ceilings"]], [("scalar", 1), ("scalar", 2)])
        self.assertTrue(all("scalar" in c["runtime"]["backend"] for c in document["curves"]))

    def test_a_toy_has_a_curve_and_no_bound(self):
        document = self.document("--target", "toy:7", "--draft", "toy:7,agree=0.8")
        self.assertIsNone(document["pass_work"])
        self.assertIsNone(document["curves"][0]["points"][0]["bound_ms"])

    def test_a_named_file_leaves_stdout_empty(self):
        run = self.plan("--target", "toy:7", "-o", "plan.json")
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        with open(self.path("plan.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["schema_version"], 1)
        self.assertEqual(self.plan("--target", "toy:7", "-o", "plan.json").returncode, 0)  # its own kind is replaced
        self.assert_fails(self.plan("--target", "toy:7", "-o", "plan.json", "--format", "table"), 2, "plan.json")
        self.assert_fails(self.plan("--target", "toy:7", "-o", self.write("notes.txt", "mine")), 2, "notes.txt")

    def test_bad_input_is_named(self):
        tiny = self.gguf("tiny")
        self.assert_fails(self.plan("--target", tiny, "--isa", "sse9"), 2, "sse9", "scalar")
        self.assert_fails(self.plan("--target", tiny, "--rows", "0"), 2, "--rows")
        self.assert_fails(self.plan("--target", tiny, "--runtime", "native", "--runtime", "auto"), 2, "twice")
        self.assert_fails(self.plan("--target", tiny, "--context", "100000"), 2, "100000", "trained for")
        self.assert_fails(self.plan("--target", self.gguf("cut")), 3, "cut.gguf")


class RealPairs(Case):
    @classmethod
    def setUpClass(cls):
        for name in ("smollm2-135m", "gemma3-270m"):
            fetched = subprocess.run([PROGRAM, "models", "fetch", name], capture_output=True, text=True, check=False)
            if fetched.returncode != 0:
                if os.environ.get("CI"):
                    raise AssertionError(fetched.stderr)
                raise unittest.SkipTest(fetched.stderr)

    def test_smollm_may_draft_for_itself_and_gemma_may_not(self):
        own = self.run_program("check", "--target", "smollm2-135m", "--draft", "smollm2-135m", "--offline")
        self.assertEqual(own.returncode, 0, own.stderr)
        other = self.run_program("check", "--target", "smollm2-135m", "--draft", "gemma3-270m", "--offline")
        self.assertEqual(other.returncode, 12, other.stderr)
        self.assertIn("token 0 is \"<|endoftext|>\" in the target and \"<pad>\"", other.stdout)
        self.assertIn("draft_model_tokenizer_mismatch", " ".join(other.stdout.split()))


class RealMemory(Case):
    """The estimate against the peak of a real run on SmolLM2."""

    def peak(self, *arguments):
        """Peak resident bytes of one run, from the kernel's account of the child."""
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            child = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, env=self.environment,
                                     stdout=nowhere, stderr=nowhere)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(child.returncode, BENCHED)
        return usage.ru_maxrss * 1024

    def test_the_estimate_is_within_five_percent_of_the_peak(self):
        # libllama writes to its whole cache at once, native to what a text needs: it gets long prompts.
        for runtime, context, sentences in (("llama", 640, 56), ("llama", 8192, 56), ("native", 640, 56),
                                            ("native", 2048, 198)):
            text = "The quick brown fox jumps over the lazy dog. " * sentences
            prompts = self.write("long.jsonl", json.dumps({"id": "long", "prompt": text}) + "\n")
            settings = ["--target", "smollm2-135m", "--max-context-tokens", str(context), "--runtime", runtime]
            for drafter in (["--lookup"], ["--draft", "smollm2-135m"]):
                # `check` holds two sets of token tables, 10 MB that a bench does not: beside the
                # smallest of these runs that is more than 5 %.
                if (runtime, context, drafter[0]) == ("native", 640, "--draft"):
                    continue
                draft = drafter[1:] and drafter
                checked = self.run_program("check", *settings, *draft, "--format", "json")
                estimate = json.loads(checked.stdout)["memory"]["peak_resident_bytes"]
                measured = self.peak("bench", *settings, *drafter, "-f", prompts, "--max-tokens", "16", "-o",
                                     "out.json")
                with self.subTest(runtime=runtime, context=context, drafter=drafter):
                    print(f"{runtime}, context {context}, {drafter}: estimate {estimate}, peak {measured}, "
                          f"ratio {estimate / measured:.3f}")
                    self.assertLess(abs(estimate / measured - 1), 0.05)

    def test_a_draft_that_does_not_fit_leaves_the_other_arms(self):
        fetched = self.run_program("models", "fetch", "smollm2-135m").stdout.strip()
        self.assertTrue(os.path.exists(fetched), fetched)
        pair = ["--target", "smollm2-135m", "--draft", fetched, "--max-context-tokens", "512"]
        checked = json.loads(self.run_program("check", *pair, "--format", "json").stdout)
        host = checked["memory"]["devices"][0]
        limit = int((host["plain_bytes"] + host["pair_bytes"]) / 2 / 0.95)
        run = self.bench(*pair, "--lookup", "-f", "code", "--quick", "--max-tokens", "8", "--memory-limit",
                         str(limit), "-o", "out.json")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        with open(self.path("out.json"), encoding="utf-8") as file:
            record = json.load(file)["paceline"]["record"]
        self.assertEqual(len(record["obstacles"]), 1)
        self.assertIn("fits only without the draft", record["obstacles"][0]["reason"])
        arms = {sample["arm"] for block in record["blocks"] for sample in block["samples"]}
        self.assertEqual(arms, {"plain", "lookup-3"})


class RealModel(Case):
    PROMPTS = ('{"messages": [{"role": "user", "content": "Repeat this line twice: the quick brown fox jumps."}]}\n'
               '{"messages": [{"role": "user", "content": "Name three rivers of Europe and the seas they reach."}]}\n')

    @classmethod
    def setUpClass(cls):
        fetched = subprocess.run([PROGRAM, "models", "fetch", "smollm2-135m"], capture_output=True, text=True, check=False)
        if fetched.returncode != 0:
            if os.environ.get("CI"):
                raise AssertionError(fetched.stderr)
            raise unittest.SkipTest(fetched.stderr)

    def run_real(self, *arguments):
        prompts = self.write("prompts.jsonl", self.PROMPTS)
        run = self.bench("--target", "smollm2-135m", "--offline", "-f", prompts, "--max-tokens", "24",
                         "--max-context-tokens", "512", *arguments, "-o", "-")
        self.assertIn(run.returncode, BENCHED, run.stderr)
        return json.loads(run.stdout)["paceline"]

    def test_lookup_writes_what_plain_writes(self):
        part = self.run_real("--lookup")
        for block in part["record"]["blocks"]:
            self.assertEqual(block["status"], "ok", block["reason"])
            self.assertTrue(block["comparisons"][0]["equal"])
        self.assertRegex(part["record"]["environment"]["target"]["sha256"], r"^b179c952")

    def test_its_own_draft_is_accepted_and_not_worth_it(self):
        part = self.run_real("--draft", "smollm2-135m")
        overall = part["evaluation"]["overall"][0]
        self.assertGreater(overall["draft"]["acceptance_rate"], 0.95)
        self.assertEqual(overall["outputs_equal"], 2)
        self.assertNotEqual(overall["verdict"], "enable")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
