// Brings libllama up before the tests of a program and down after them.
#include <gtest/gtest.h>

#include <memory>

#include "core/log.hpp"
#include "runtime/llama/llama_backend.hpp"

namespace paceline::test {
namespace {

class LlamaEnvironment final : public testing::Environment {
 public:
  void SetUp() override { backend_ = std::make_unique<runtime::LlamaBackend>(); }
  void TearDown() override { backend_.reset(); }

 private:
  std::unique_ptr<runtime::LlamaBackend> backend_;
};

[[maybe_unused]] testing::Environment* const k_environment =
    testing::AddGlobalTestEnvironment(new LlamaEnvironment);  // gtest owns it

}  // namespace
}  // namespace paceline::test
