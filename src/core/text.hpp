// Small helpers on UTF-8 text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

/// The length of the longest prefix of `bytes` that does not end inside a UTF-8 character. Bytes
/// that can never become a character count as whole (they will be shown as U+FFFD).
std::size_t whole_utf8_prefix(std::string_view bytes);

/// The text with U+FFFD for what is no UTF-8: one for each beginning of a character that does not
/// go on, one for each other byte.
std::string to_valid_utf8(std::string_view bytes);

/// For terminals: what could move the cursor, colour or reorder what others wrote (control
/// characters with the line break, bidirectional controls) as \n, \x1b, \u202e, ... Valid UTF-8
/// otherwise as it is, so twice gives the same as once.
std::string printable(std::string_view text);

/// For texts quoted in logs and messages: like printable, quotes and backslashes escaped too. At
/// most `limit` bytes and "..." where it was cut.
std::string escape(std::string_view text, std::size_t limit = 200);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace paceline
