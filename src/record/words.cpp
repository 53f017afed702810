#include "core/check.hpp"
#include "record/record.hpp"

namespace paceline::record {

std::string_view to_string(ArmKind kind) {
  switch (kind) {
    case ArmKind::plain:
      return "plain";
    case ArmKind::lookup:
      return "lookup";
    case ArmKind::draft_model:
      return "draft_model";
    case ArmKind::scripted:
      return "scripted";
  }
  PACELINE_CHECK(false, "an arm kind without a word");
  return {};
}

std::string_view to_string(CellStatus status) {
  switch (status) {
    case CellStatus::ok:
      return "ok";
    case CellStatus::skipped:
      return "skipped";
    case CellStatus::failed:
      return "failed";
  }
  PACELINE_CHECK(false, "a cell status without a word");
  return {};
}

}  // namespace paceline::record
