// The real chat model in the native runtime. A header, so that only programs that use it link the
// runtime.
#pragma once

#include <memory>

#include "runtime/native/native_model.hpp"
#include "support/matchers.hpp"
#include "support/real_model.hpp"

namespace paceline::test {

/// SmolLM2 as `model()` by native, loaded once per program, and as `llama()` by libllama.
class NativeSmolLm2 : public SmolLm2 {
 protected:
  static void TearDownTestSuite() {
    native_.reset();
    SmolLm2::TearDownTestSuite();
  }
  void SetUp() override {
    SmolLm2::SetUp();
    if (IsSkipped() || HasFatalFailure() || native_ != nullptr) return;
    native_ = value_of(runtime::load_native_model(llama().info().path));
  }

  static const runtime::Model& llama() { return SmolLm2::model(); }
  static const runtime::Model& model() { return *native_; }

 private:
  static inline std::shared_ptr<const runtime::Model> native_;
};

}  // namespace paceline::test
