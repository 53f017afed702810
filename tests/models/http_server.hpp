// A small HTTP/1.1 server on loopback for tests: one answer per connection, misbehaving as told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace paceline::models {

struct HttpRequest {
  std::string path;
  std::optional<std::uint64_t> range_start;  // of "Range: bytes=N-"
};

struct HttpAnswer {
  int status = 200;
  std::string body = {};
  std::optional<std::size_t> cut_after =
      {};                     // closes the connection behind so many bytes of the body
  bool is_stalled = false;    // keeps the connection open and sends no more
  std::string location = {};  // of a redirect
};

/// Serves from its own thread until it is destroyed. `answer` is called on that thread.
class HttpServer {
 public:
  explicit HttpServer(std::function<HttpAnswer(const HttpRequest&)> answer);
  ~HttpServer();

  /// "http://127.0.0.1:PORT"
  std::string url() const;
  int requests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The usual answer for a file, with or without support for ranges.
HttpAnswer serve_bytes(const std::string& bytes, const HttpRequest& request,
                       bool has_ranges = true);

}  // namespace paceline::models
