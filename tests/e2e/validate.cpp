// Validates a JSON document against a JSON Schema: SCHEMA DOCUMENT. Exit 0 where it fits.
#include <cstdio>
#include <nlohmann/json-schema.hpp>

#include "core/file.hpp"
#include "core/json.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const auto schema = paceline::read_file(argv[1]).and_then(
        [](const std::string& text) { return paceline::parse_json(text, "schema"); });
    const auto document = paceline::read_file(argv[2]).and_then(
        [](const std::string& text) { return paceline::parse_json(text, "document"); });
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
