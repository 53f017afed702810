// The real chat model that tests with the label `model` run on.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "runtime/runtime.hpp"

namespace paceline::test {

/// SmolLM2-135M-Instruct, fetched into the user's cache where it is missing and loaded once per
/// program. Where that fails the test that is set up fails under CI and is skipped elsewhere.
class SmolLm2 : public testing::Test {
 protected:
  static void TearDownTestSuite();
  void SetUp() override;

  static const runtime::Model& model();
};

}  // namespace paceline::test
