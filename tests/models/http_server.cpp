#include "models/http_server.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <format>
#include <string_view>
#include <thread>

#include "core/check.hpp"
#include "models/file_descriptor.hpp"

namespace paceline::models {

namespace {

constexpr int k_poll_ms = 20;

bool wait_readable(int fd, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, k_poll_ms) > 0) return true;
  }
  return false;
}

HttpRequest read_request(int fd, const std::stop_token& stop) {
  std::string text;
  char buffer[4096];
  while (!text.contains("\r\n\r\n") && wait_readable(fd, stop)) {
    const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  HttpRequest request;
  const auto begin = text.find(' ') + 1;
  request.path = text.substr(begin, text.find(' ', begin) - begin);
  constexpr std::string_view k_range = "Range: bytes=";
  if (const auto at = text.find(k_range); at != std::string::npos) {
    std::uint64_t start = 0;
    std::from_chars(text.data() + at + k_range.size(), text.data() + text.size(), start);
    request.range_start = start;
  }
  return request;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

struct HttpServer::State {
  std::function<HttpAnswer(const HttpRequest&)> answer;
  FileDescriptor listener;
  int port = 0;
  std::atomic<int> requests = 0;
  std::jthread thread;

  void serve(const std::stop_token& stop) {
    while (wait_readable(listener.get(), stop)) {
      const FileDescriptor client(::accept(listener.get(), nullptr, nullptr));
      if (client.get() < 0) continue;
      const HttpRequest request = read_request(client.get(), stop);
      ++requests;
      const HttpAnswer reply = answer(request);
      const std::string head = std::format(
          "HTTP/1.1 {} Word\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n", reply.status,
          reply.body.size(),
          reply.location.empty() ? "" : std::format("Location: {}\r\n", reply.location));
      send_all(client.get(), head);
      send_all(client.get(),
               std::string_view(reply.body).substr(0, reply.cut_after.value_or(std::string::npos)));
      // The client's leaving makes its socket readable.
      if (reply.is_stalled) wait_readable(client.get(), stop);
    }
  }
};

HttpServer::HttpServer(std::function<HttpAnswer(const HttpRequest&)> answer)
    : state_(std::make_unique<State>()) {
  state_->answer = std::move(answer);
  state_->listener = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  PACELINE_CHECK(::bind(state_->listener.get(), generic, size) == 0, "loopback is there");
  PACELINE_CHECK(::listen(state_->listener.get(), 16) == 0, "loopback is there");
  PACELINE_CHECK(::getsockname(state_->listener.get(), generic, &size) == 0, "it is bound");
  state_->port = ntohs(address.sin_port);
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->serve(stop); });
}

HttpServer::~HttpServer() = default;

std::string HttpServer::url() const { return std::format("http://127.0.0.1:{}", state_->port); }
int HttpServer::requests() const { return state_->requests; }

HttpAnswer serve_bytes(const std::string& bytes, const HttpRequest& request, bool has_ranges) {
  HttpAnswer answer;
  answer.body = bytes;
  if (has_ranges && request.range_start) {
    answer.status = *request.range_start < bytes.size() ? 206 : 416;
    answer.body = answer.status == 206 ? bytes.substr(*request.range_start) : "";
  }
  return answer;
}

}  // namespace paceline::models
