// Validates a JSON document against a JSON Schema: SCHEMA DOCUMENT. Exit 0 where it fits.
#include <cstdio>
#include <nlohmann/json-schema.hpp>
#include <string>

#include "core/file.hpp"
#include "core/json.hpp"

namespace {

paceline::Result<paceline::Json> read_json(const char* path) {
  PACELINE_TRY(const std::string text, paceline::read_file(path));
  return paceline::parse_json(text, path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const auto schema = read_json(argv[1]);
    const auto document = read_json(argv[2]);
    if (!schema || !document) {
      std::fprintf(stderr, "%s\n", (schema ? document : schema).error().message.c_str());
      return 2;
    }
    nlohmann::json_schema::json_validator validator(*schema);
    validator.validate(*document);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
