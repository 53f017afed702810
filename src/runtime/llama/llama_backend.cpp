#include "runtime/llama/llama_backend.hpp"

#include <dlfcn.h>
#include <ggml-backend.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/text.hpp"
#include "runtime/llama/llama_backend_impl.hpp"
#include "runtime/llama/llama_version.hpp"

namespace paceline::runtime {

namespace {

constexpr int k_broke_off = 3;  // the exit code of bad input and environments

// The innermost capture of this thread. libllama logs on the calling thread.
thread_local CapturedErrors* current_capture = nullptr;

void on_log(ggml_log_level level, const char* text, void* /*user_data*/) {
  const std::string_view line = trim(text != nullptr ? text : "");
  if (line.empty() || line == ".") return;  // progress dots
  if (level == GGML_LOG_LEVEL_ERROR && current_capture != nullptr) current_capture->add(line);
  log(LogLevel::debug, line);
}

// ggml calls this, on any thread, where one of its assertions does not hold; it cannot go on. What
// a header or a small load can show was found before, in a child process.
void on_abort(const char* message) {
  log(LogLevel::error,
      std::format(
          "libllama broke off ({}): a model file is damaged in a way that shows only while it "
          "is computed, or this libllama has a fault; `paceline check` tells more of a file",
          trim(message != nullptr ? message : "no reason given")));
  std::_Exit(k_broke_off);
}

// True for instruction sets; the other features say how the library was built.
bool is_instruction_set(std::string_view feature) {
  static constexpr std::array<std::string_view, 4> k_others = {"LLAMAFILE", "OPENMP", "REPACK",
                                                               "ACCELERATE"};
  return std::ranges::find(k_others, feature) == k_others.end();
}

// The file that holds the back end's code, for example "libggml-cpu-zen4".
std::string library_of(const void* code) {
  Dl_info where{};
  if (dladdr(code, &where) == 0 || where.dli_fname == nullptr) return {};
  return std::filesystem::path(where.dli_fname).stem().string();
}

std::string describe_cpu(ggml_backend_reg_t registry) {
  std::string text = ggml_backend_reg_name(registry);
  void* address = ggml_backend_reg_get_proc_address(registry, "ggml_backend_get_features");
  if (address == nullptr) return text;
  if (const std::string library = library_of(address); !library.empty()) text += " " + library;
  const auto get_features = reinterpret_cast<ggml_backend_get_features_t>(address);
  std::vector<std::string> features;
  const ggml_backend_feature* feature = get_features(registry);
  for (; feature != nullptr && feature->name != nullptr; ++feature) {
    if (std::string_view(feature->value) != "0" && is_instruction_set(feature->name)) {
      features.emplace_back(feature->name);
    }
  }
  if (!features.empty()) text += std::format(" ({})", join(features, " "));
  return text;
}

}  // namespace

CapturedErrors::CapturedErrors() : outer_(current_capture) { current_capture = this; }
CapturedErrors::~CapturedErrors() { current_capture = outer_; }

void CapturedErrors::add(std::string_view text) {
  static constexpr std::size_t k_limit = 2000;
  if (text_.size() >= k_limit) return;
  if (!text_.empty()) text_ += "; ";
  text_ += text;
}

std::string CapturedErrors::text(std::string_view otherwise) const {
  return text_.empty() ? std::string(otherwise) : text_;
}

bool only_cpu_computes() {
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const auto type = ggml_backend_dev_type(ggml_backend_dev_get(i));
    if (type != GGML_BACKEND_DEVICE_TYPE_CPU && type != GGML_BACKEND_DEVICE_TYPE_ACCEL) {
      return false;
    }
  }
  return true;
}

LlamaBackend::LlamaBackend() {
  ggml_set_abort_callback(on_abort);
  llama_log_set(on_log, nullptr);
  ggml_backend_load_all();
  llama_backend_init();
}

LlamaBackend::~LlamaBackend() {
  llama_backend_free();
  llama_log_set(nullptr, nullptr);
  ggml_set_abort_callback(nullptr);
}

std::string llama_build() { return library_versions(); }

std::string llama_backend_name() {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) {
      parts.push_back(describe_cpu(ggml_backend_dev_backend_reg(device)));
    } else {
      parts.push_back(std::format("{} ({})", ggml_backend_dev_name(device),
                                  ggml_backend_dev_description(device)));
    }
  }
  return join(parts, " + ");
}

}  // namespace paceline::runtime
