#include "core/text.hpp"

#include <cstdint>
#include <format>

namespace paceline {

namespace {

constexpr std::string_view k_replacement = "\xef\xbf\xbd";  // U+FFFD

/// The length that a first byte announces, 0 where it cannot start a character.
std::size_t announced_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

/// True where `second` may follow `first` (no overlong forms, surrogates, or beyond U+10FFFF).
bool second_fits(unsigned char first, unsigned char second) {
  if ((second & 0xc0) != 0x80) return false;
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second <= 0x9f;
  if (first == 0xf0) return second >= 0x90;
  if (first == 0xf4) return second <= 0x8f;
  return true;
}

struct Step {
  std::size_t length;  // bytes that belong together, at least 1
  bool valid;          // they are a whole character
  bool cut;            // the text ends inside what may become a character
};

Step step_at(std::string_view bytes, std::size_t at) {
  const auto first = static_cast<unsigned char>(bytes[at]);
  const std::size_t length = announced_length(first);
  if (length == 0) return {1, false, false};
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= bytes.size()) return {i, false, true};
    const auto next = static_cast<unsigned char>(bytes[at + i]);
    const bool fits = i == 1 ? second_fits(first, next) : (next & 0xc0) == 0x80;
    if (!fits) return {i, false, false};
  }
  return {length, true, false};
}

}  // namespace

std::size_t whole_utf8_prefix(std::string_view bytes) {
  // Only the last three bytes can belong to an unfinished character.
  std::size_t at = bytes.size() > 3 ? bytes.size() - 3 : 0;
  while (at < bytes.size()) {
    if ((static_cast<unsigned char>(bytes[at]) & 0xc0) == 0x80) {
      ++at;
      continue;
    }
    const Step step = step_at(bytes, at);
    if (step.cut) return at;
    at += step.length;
  }
  return bytes.size();
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const Step step = step_at(bytes, at);
    if (step.valid) {
      text.append(bytes.substr(at, step.length));
    } else {
      text.append(k_replacement);
    }
    at += step.length;
  }
  return text;
}

namespace {

/// One whole character as a terminal may show it.
std::string printable_character(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) {
    if (byte(0) == '\n') return "\\n";
    if (byte(0) == '\r') return "\\r";
    if (byte(0) == '\t') return "\\t";
    if (byte(0) < 0x20 || byte(0) == 0x7f) {
      return std::format("\\x{:02x}", static_cast<unsigned>(byte(0)));
    }
  }
  // U+0080 to U+009F: some terminals take them for escape sequences.
  if (byte(0) == 0xc2 && byte(1) < 0xa0) {
    return std::format("\\x{:02x}", static_cast<unsigned>(byte(1)));
  }
  // U+202A to U+202E and U+2066 to U+2069 reorder the characters around them.
  if (character.starts_with("\xe2\x80") && byte(2) >= 0xaa && byte(2) <= 0xae) {
    return std::format("\\u{:04x}", 0x2000U + (byte(2) - 0x80U));
  }
  if (character.starts_with("\xe2\x81") && byte(2) >= 0xa6 && byte(2) <= 0xa9) {
    return std::format("\\u{:04x}", 0x2040U + (byte(2) - 0x80U));
  }
  return std::string(character);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Step step = step_at(text, at);
    out +=
        step.valid ? printable_character(text.substr(at, step.length)) : std::string(k_replacement);
    at += step.length;
  }
  return out;
}

std::string escape(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Step step = step_at(text, at);
    std::string shown;
    if (!step.valid) {
      shown = k_replacement;
    } else if (text[at] == '"' || text[at] == '\\') {
      shown = {'\\', text[at]};
    } else {
      shown = printable_character(text.substr(at, step.length));
    }
    if (out.size() + shown.size() > limit) return out + "...";
    out += shown;
    at += step.length;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view k_space = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(k_space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(k_space) - begin + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

}  // namespace paceline
