// Shared inside this room: how a failed call of libllama gets its reason, and what computes.
#pragma once

#include <string>
#include <string_view>

namespace paceline::runtime {

/// Keeps the error lines that libllama logs on this thread while the object lives.
class CapturedErrors {
 public:
  CapturedErrors();
  ~CapturedErrors();
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;

  void add(std::string_view text);
  /// The lines joined by "; ", or `otherwise` where nothing was logged.
  std::string text(std::string_view otherwise) const;

 private:
  CapturedErrors* outer_;
  std::string text_;
};

/// True where no accelerator takes part.
bool only_cpu_computes();

}  // namespace paceline::runtime
