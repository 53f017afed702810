// Turns emitted tokens into text that may be shown: whole UTF-8 characters, nothing that may still
// become a stop string, nothing behind one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::engine {

/// One text. One thread.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Takes the bytes of one token and gives the text that is safe to show now. Bytes that are no
  /// UTF-8 become U+FFFD. The whole text does not depend on how the bytes are cut into tokens.
  std::string push(std::string_view bytes);
  /// True once a stop string is complete. What follows is ignored.
  bool stopped() const { return stopped_; }
  /// The text ends here: gives what was held back.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;  // not shown yet
  bool stopped_ = false;
};

}  // namespace paceline::engine
