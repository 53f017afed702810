#include "models/hub.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <format>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "models/file_descriptor.hpp"

namespace paceline::models {

namespace fs = std::filesystem;

namespace {

constexpr int k_max_tries = 20;
constexpr long k_partial_content = 206;
constexpr long k_ok = 200;
constexpr long k_not_found = 404;
constexpr long k_no_such_range = 416;

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

/// One transfer's state, handed to curl's callbacks.
struct Transfer {
  const Download& what;
  const FetchOptions& options;
  CURL* handle = nullptr;
  FileDescriptor file = {};
  std::uint64_t size = 0;  // bytes in the part
  bool has_begun = false;
  std::optional<Error> error = {};  // found by us, more exact than curl's
};

std::uint64_t size_of(const fs::path& path) {
  std::error_code code;
  const auto size = fs::file_size(path, code);
  return code ? 0 : size;
}

Error size_error(const Download& what, std::uint64_t seen) {
  return fail(ErrorCode::bad_format,
              std::format("{} has {} bytes, {} are wanted", what.url, seen, what.bytes));
}

/// Looks at the answer's head once: the status, where its bytes go, and how many there will be.
Result<void> begin(Transfer& transfer) {
  long status = 0;
  curl_off_t length = -1;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(transfer.handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (status == k_ok && transfer.size > 0) {
    // The server starts from the first byte, whatever it was asked.
    if (::ftruncate(transfer.file.get(), 0) != 0) {
      return fail(ErrorCode::io,
                  std::format("\"{}\" cannot be emptied", transfer.what.part.string()));
    }
    transfer.size = 0;
  }
  if (status != k_ok && status != k_partial_content) {
    ErrorCode code = ErrorCode::runtime_failed;
    if (status == k_not_found) code = ErrorCode::not_found;
    if (status == k_no_such_range) code = ErrorCode::bad_format;  // our part is too long for it
    return fail(code, std::format("{} answered HTTP status {}", transfer.what.url, status));
  }
  if (length >= 0 && transfer.size + static_cast<std::uint64_t>(length) != transfer.what.bytes) {
    return size_error(transfer.what, transfer.size + static_cast<std::uint64_t>(length));
  }
  return {};
}

Result<void> take(Transfer& transfer, std::string_view bytes) {
  if (!std::exchange(transfer.has_begun, true)) PACELINE_TRY_VOID(begin(transfer));
  if (transfer.size + bytes.size() > transfer.what.bytes) {
    return size_error(transfer.what, transfer.size + bytes.size());
  }
  if (auto written = transfer.file.write(bytes); !written) {
    return fail(ErrorCode::io,
                std::format("\"{}\": {}", transfer.what.part.string(), written.error().message));
  }
  transfer.size += bytes.size();
  return {};
}

std::size_t on_bytes(char* data, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto taken = take(transfer, {data, count});
  if (taken) return count;
  transfer.error = taken.error();
  return CURL_WRITEFUNC_ERROR;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(user);
  if (transfer.options.progress) {
    transfer.options.progress(transfer.size, transfer.what.bytes, "hub");
  }
  return transfer.options.stop.stop_requested() ? 1 : 0;
}

/// libcurl itself does not look at these variables; its command line tool does.
void use_certificates(CURL* handle) {
  for (const char* const name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const char* const file = std::getenv(name); file != nullptr && *file != '\0') {
      curl_easy_setopt(handle, CURLOPT_CAINFO, file);
      break;
    }
  }
  if (const char* const folder = std::getenv("SSL_CERT_DIR");
      folder != nullptr && *folder != '\0') {
    curl_easy_setopt(handle, CURLOPT_CAPATH, folder);
  }
}

void set_options(Transfer& transfer, char* message) {
  CURL* const handle = transfer.handle;
  const Download& what = transfer.what;
  curl_easy_setopt(handle, CURLOPT_URL, what.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "paceline");
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(what.connect_timeout.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(what.idle_timeout.count()));
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &on_bytes);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  if (transfer.size > 0) {
    curl_easy_setopt(handle, CURLOPT_RANGE, std::format("{}-", transfer.size).c_str());
  }
  use_certificates(handle);
}

ErrorCode code_of(CURLcode code) {
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return ErrorCode::cancelled;
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::timed_out;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return ErrorCode::not_found;
    default:
      return ErrorCode::runtime_failed;
  }
}

Result<void> transfer_once(const Download& what, const FetchOptions& options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, CurlDeleter> handle(ready == CURLE_OK ? curl_easy_init() : nullptr);
  if (!handle) return fail(ErrorCode::runtime_failed, "libcurl cannot be set up");
  Transfer transfer{.what = what, .options = options, .handle = handle.get()};
  auto file = FileDescriptor::open(what.part, O_WRONLY | O_CREAT | O_APPEND);
  if (!file) return fail(ErrorCode::io, file.error().message);
  transfer.file = std::move(*file);
  transfer.size = size_of(what.part);
  char message[CURL_ERROR_SIZE] = "";
  set_options(transfer, message);
  const CURLcode code = curl_easy_perform(handle.get());
  if (transfer.error) return *transfer.error;
  if (code != CURLE_OK) {
    const std::string_view text = *message != '\0' ? message : curl_easy_strerror(code);
    return fail(code_of(code), std::format("{}: {}", what.url, text));
  }
  // An answer without a body never reached on_bytes.
  if (!transfer.has_begun) PACELINE_TRY_VOID(begin(transfer));
  if (transfer.size != what.bytes) return size_error(what, transfer.size);
  return {};
}

}  // namespace

Result<void> download(const Download& what, const FetchOptions& options) {
  std::error_code ignored;
  if (size_of(what.part) > what.bytes) fs::remove(what.part, ignored);
  Result<void> result;
  for (int tries = 0; tries < k_max_tries; ++tries) {
    const std::uint64_t before = size_of(what.part);
    if (before == what.bytes) return {};
    result = transfer_once(what, options);
    if (result) return result;
    const ErrorCode code = result.error().code;
    if (code == ErrorCode::bad_format) fs::remove(what.part, ignored);
    const bool may_go_on = code == ErrorCode::runtime_failed || code == ErrorCode::timed_out;
    if (!may_go_on || size_of(what.part) <= before) break;
  }
  if (size_of(what.part) == 0) fs::remove(what.part, ignored);
  return result;
}

}  // namespace paceline::models
