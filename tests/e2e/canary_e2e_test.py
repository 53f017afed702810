"""`paceline canary` as a user starts it: exit codes, JSON, the published profiles, limits, signals."""

import json
import signal
import subprocess
import sys
import unittest

from e2e_test import PROGRAM, VALIDATE, Case


class CanaryCase(Case):
    def canary(self, *arguments, **more):
        return self.run_program("canary", *arguments, **more)

    def document(self, code, *arguments):
        run = self.canary(*arguments, "--format", "json")
        self.assertEqual(run.returncode, code, run.stderr + run.stdout)
        schema = self.write("schema.json", self.run_program("schema", "canary").stdout)
        valid = subprocess.run([VALIDATE, schema, self.write("document.json", run.stdout)], capture_output=True,
                               text=True, check=False)
        self.assertEqual(valid.returncode, 0, valid.stderr)
        return json.loads(run.stdout)


class Canary(CanaryCase):
    def test_a_faultless_pair_is_equal_in_every_stage(self):
        document = self.document(0, "--target", "toy:7", "--draft", "toy:7,agree=0.7", "--num-draft-tokens", "4")
        self.assertEqual(document["result"], "equal")
        cases = document["equality"]["cases"]
        self.assertEqual({c["outcome"] for c in cases}, {"equal"})
        self.assertLessEqual({"sampler", "repeat", "chain", "forced", "tree", "context_end", "drafter"},
                             {c["stage"] for c in cases})
        self.assertEqual({c["depth"] for c in cases if c["stage"] == "chain"}, {1, 2, 3, 4})

    def test_the_table_ends_with_the_result(self):
        run = self.canary("--target", "toy:7", "--lookup")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.endswith("result: equal\n"))
        self.assertIn("left out: window", run.stdout)

    def test_usage_errors_exit_with_2(self):
        self.assert_fails(self.canary("--target", "toy:7", "-n", "17"), 2, "17")
        self.assert_fails(self.canary("--target", "toy:7", "--draft", "toy:8", "--lookup"), 2, "leave one out")
        self.assert_fails(self.canary("--target", "toy:7", "--profile", "fast"), 2, "fast")
        self.assert_fails(self.canary("--target", "toy:7", "--profile", "capacity", "--max-context-tokens", "100"), 2,
                          "--max-context-tokens")

    def test_help_names_no_paragraph_of_the_published_text(self):
        self.assertNotRegex(self.canary("--help").stdout, r"SPEC-\d|AC-\d")

    def test_a_time_limit_shows_what_is_known(self):
        document = self.document(11, "--target", "toy:7,context=65536", "--max-tokens", "4000", "--time-limit", "0.001")
        self.assertEqual(document["result"], "inconclusive")
        self.assertIn("--time-limit", document["equality"]["incomplete_reason"])

    def test_a_full_disk_behind_stdout_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(self.canary("--target", "toy:7", stdout=full).returncode, 3)


class CanaryProfiles(CanaryCase):
    def test_performance_judges_by_the_published_floors(self):
        document = self.document(10, "--target", "toy:7,context=2048", "--draft", "toy:7,agree=0.05", "--profile",
                                 "performance", "--sustained-seconds", "0.05", "--last-window-seconds", "60")
        hardware = document["hardware"]
        self.assertEqual(document["result"], "failed")
        self.assertEqual(hardware["figures"]["baseline_runs"], 5)
        self.assertEqual(hardware["figures"]["spec_runs"], 5)
        self.assertRegex("; ".join(hardware["failure_reasons"]), r"acceptance 0\.\d{3} < 0\.300")
        self.assertEqual(hardware["acceptance_hardware_wanted"], "M4 16 GB")

    def test_performance_without_a_window_fails_as_published(self):
        document = self.document(10, "--target", "toy:7,context=2048", "--draft", "toy:7", "--profile", "performance",
                                 "--sustained-seconds", "0")
        self.assertIn("sustained window produced no samples", document["hardware"]["failure_reasons"])

    def test_small_host_runs_both_modes(self):
        document = self.document(0, "--target", "toy:7,context=2048", "--draft", "toy:7,agree=0.7", "--profile",
                                 "small-host")
        figures = document["hardware"]["figures"]
        self.assertEqual(document["result"], "passed")
        self.assertGreater(figures["streamed_chunks"], 0)
        self.assertGreater(figures["non_streamed_accepted_tokens"], 0)

    def test_small_host_fails_where_nothing_is_accepted(self):
        document = self.document(10, "--target", "toy:7,context=2048", "--draft", "toy:7,agree=0", "--profile",
                                 "small-host")
        self.assertEqual(document["hardware"]["failure_reasons"],
                         ["non_streamed accepted no drafted tokens", "streamed accepted no drafted tokens"])

    def test_capacity_fills_nine_tenths_of_the_context(self):
        document = self.document(0, "--target", "toy:7,context=4096", "--draft", "toy:7,agree=0.7", "--profile",
                                 "capacity")
        figures = document["hardware"]["figures"]
        self.assertEqual(figures["advertised_context_tokens"], 4096)
        self.assertEqual(figures["prompt_tokens"], 3687)
        self.assertEqual(figures["generated_tokens"], 32)
        self.assertFalse(figures["out_of_memory"])
        self.assertGreater(figures["peak_resident_bytes"], 1 << 20)

    def test_ctrl_c_shows_what_is_known(self):
        process = subprocess.Popen([PROGRAM, "canary", "--target", "toy:7,context=2048", "--draft", "toy:7", "--profile",
                                    "performance", "--sustained-seconds", "100", "--format", "json"], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "sustained" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        document = json.loads(out)
        self.assertEqual(document["result"], "inconclusive")
        self.assertEqual(document["hardware"]["figures"]["spec_runs"], 5)


class CanaryGguf(CanaryCase):
    """Small generated files through libllama."""

    def test_a_dense_target_is_equal_with_its_own_draft_and_in_trees(self):
        tiny = self.gguf("tiny")
        document = self.document(0, "--target", tiny, "--draft", tiny, "-n", "2", "--max-tokens", "24")
        self.assertEqual(document["result"], "equal")
        self.assertTrue(any(c["stage"] == "tree" and c["accepted"] > 0 for c in document["equality"]["cases"]))

    def test_a_sliding_window_is_passed_with_rejections(self):
        document = self.document(0, "--target", self.gguf("window"), "--lookup", "-n", "2", "--max-tokens", "24")
        cases = [c for c in document["equality"]["cases"] if c["stage"] == "window" and c["arm"] == "forced"]
        self.assertEqual(len(cases), 2)
        for case in cases:
            self.assertGreater(case["prompt_tokens"] + case["tokens"], 100)
            self.assertGreater(case["accepted_counts"][0], 0)

    def test_a_recurrent_target_is_refused(self):
        self.assert_fails(self.canary("--target", self.gguf("recurrent")), 12, "target_no_rollback", "mamba")

    def test_a_draft_with_other_words_is_refused(self):
        run = self.canary("--target", self.gguf("tiny"), "--draft", self.gguf("other-words"))
        self.assert_fails(run, 12, "draft_model_tokenizer_mismatch")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
