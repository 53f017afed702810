#include "models/models.hpp"

#include <format>
#include <system_error>

#include "core/text.hpp"
#include "models/fetch.hpp"

namespace paceline::models {

namespace fs = std::filesystem;

namespace {

/// The known model that the words mean, or null where they are a path that exists.
Result<const NamedModel*> resolve(std::string_view name_or_path) {
  if (name_or_path.empty() || name_or_path.contains('\0')) {
    return fail(ErrorCode::not_found, std::format("a model's name or path is wanted, found \"{}\"",
                                                  escape(name_or_path)));
  }
  std::error_code code;
  if (fs::exists(fs::path(name_or_path), code)) return nullptr;
  if (name_or_path.contains('/')) {
    return fail(ErrorCode::not_found,
                std::format("the model file \"{}\" does not exist", escape(name_or_path)));
  }
  if (const NamedModel* const model = find_model(name_or_path)) return model;
  std::vector<std::string> names;
  for (const NamedModel& model : catalogue()) names.push_back(model.name);
  return fail(ErrorCode::not_found,
              std::format("\"{}\" is neither a file nor a known model; known: {}",
                          escape(name_or_path), join(names, ", ")));
}

}  // namespace

Result<fs::path> cached_path(const NamedModel& model) {
  PACELINE_TRY(const Sources sources, default_sources());
  return model_path(model, sources);
}

Result<fs::path> locate(std::string_view name_or_path) {
  PACELINE_TRY(const NamedModel* const model, resolve(name_or_path));
  if (model == nullptr) return fs::path(name_or_path);
  PACELINE_TRY(const Sources sources, default_sources());
  return locate(*model, sources);
}

Result<fs::path> ensure_model(std::string_view name_or_path, const FetchOptions& options) {
  PACELINE_TRY(const NamedModel* const model, resolve(name_or_path));
  if (model == nullptr) return fs::path(name_or_path);
  PACELINE_TRY(const Sources sources, default_sources());
  return ensure_model(*model, sources, options);
}

Result<void> verify_model(std::string_view name, const FetchOptions& options) {
  const NamedModel* const model = find_model(name);
  if (model == nullptr) {
    return fail(ErrorCode::not_found, std::format("\"{}\" is not a known model", escape(name)));
  }
  PACELINE_TRY(const Sources sources, default_sources());
  return verify_model(*model, sources, options);
}

}  // namespace paceline::models
