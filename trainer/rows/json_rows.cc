#include "trainer/rows/json_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/names.h"
#include "base/repeated_member.h"
#include "trainer/config/suggest.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/feature_name.h"
#include "trainer/rows/json_member.h"
#include "trainer/rows/scaled.h"

namespace dtrain {

using Json = nlohmann::json;

namespace {

// Nothing that is read is nested so deeply; the parser's values are copied and freed by functions that call
// themselves.
constexpr int kMostDepth = 64;
constexpr char kList[] = "features";

}  // namespace

JsonRows::JsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec)
    : spec_(spec), lines_(std::move(file)) {
  std::vector<std::string> names = spec_.form.features;
  std::sort(names.begin(), names.end());
  has_feature_features_ = std::binary_search(names.begin(), names.end(), kList);
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) repeated_ = *repeated;
}

bool JsonRows::Next(RowBlock* block) {
  std::string_view line;
  do {
    if (!lines_.Next(&line)) return false;
  } while (line.find_first_not_of(" \t") == std::string_view::npos);
  RepeatedMember repeated;
  const auto check = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kMostDepth) Refuse(fmt::format("nested more than {} deep. Correct it.", kMostDepth));
    if (const std::string* name = repeated.See(event, parsed)) {
      Refuse(fmt::format("{} stands twice in one object. Leave one.", Quoted(Shown(*name))));
    }
    return true;
  };
  try {
    AddRow(Json::parse(line, check), line, block);
  } catch (const Json::out_of_range&) {
    Refuse("a number beyond float64; must be at most 3.4e38 (float32). Correct it, or remove the line.");
  } catch (const Json::parse_error& error) {
    throw UserError(
        "{}:{}:{}: not JSON from here; a line must be one row, such as {{\"features\": [1, 2]}}. Correct it, "
        "or "
        "remove the line.",
        lines_.path(), lines_.line(), error.byte);
  }
  return true;
}

void JsonRows::AddRow(const Json& row, std::string_view text, RowBlock* block) const {
  const auto list = row.is_object() ? row.find(kList) : row.end();
  const bool listed = list != row.end() && (list->is_array() || !has_feature_features_);
  if (row.is_array() || listed) {
    AddList(listed ? *list : row, block);
  } else if (row.is_object()) {
    AddByName(row, block);
  } else {
    Refuse("neither an object nor a list; a row is {\"features\": [1, 2]} or has the features by name.");
  }
  const bool named = row.is_object() && row.contains("id");
  block->ids.emplace_back(named ? MemberText(text, "id") : std::string_view());
  ++block->rows;
}

void JsonRows::AddList(const Json& list, RowBlock* block) const {
  if (!list.is_array()) Refuse("features is no list; it must be one of numbers.");
  if (static_cast<int64_t>(list.size()) != spec_.inputs) {
    Refuse(fmt::format("{}; must be {}, as the model has.",
                       Plural(static_cast<int64_t>(list.size()), "feature"), spec_.inputs));
  }
  for (int64_t i = 0; i < spec_.inputs; ++i) {
    block->floats.push_back(Value(list[static_cast<size_t>(i)], i));
  }
}

void JsonRows::AddByName(const Json& row, RowBlock* block) const {
  const std::vector<std::string>& names = spec_.form.features;
  if (names.empty()) {
    Refuse("features by name, and those of the model have none; give them as {\"features\": [1, 2]}.");
  }
  if (!repeated_.empty()) {
    Refuse(
        fmt::format("features by name, and {} of the model are called {}; give them as "
                    "{{\"features\": [1, 2]}}, in the training data's order.",
                    std::count(names.begin(), names.end(), repeated_), Quoted(Shown(repeated_))));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = row.find(names[i]);
    if (found != row.end()) {
      block->floats.push_back(Value(*found, static_cast<int64_t>(i)));
      continue;
    }
    std::vector<std::string> keys;
    for (const auto& item : row.items()) keys.push_back(item.key());
    const std::string closest = ClosestName(names[i], keys);
    Refuse(fmt::format("no {}; the model has this feature.{} Add it.", Quoted(Shown(names[i])),
                       closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest)))));
  }
}

float JsonRows::Value(const Json& value, int64_t feature) const {
  if (!value.is_number()) {
    Refuse(fmt::format("{} = {}; must be a number.", Title(feature),
                       Shown(value.dump(-1, ' ', false, Json::error_handler_t::replace))));
  }
  const double number = value.get<double>();
  if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max())) {
    Refuse(fmt::format("{} = {}; must be at most 3.4e38 (float32).", Title(feature), value.dump()));
  }
  if (spec_.pixels && !IsPixel(number)) {
    Refuse(fmt::format("{} = {}; {}.", Title(feature), value.dump(), kPixelRule));
  }
  return Scaled(spec_, feature, static_cast<float>(number));
}

std::string JsonRows::Title(int64_t feature) const {
  const std::string name = FeatureName(spec_, feature);
  return name.empty() ? fmt::format("feature {}", feature + 1) : name;
}

void JsonRows::Refuse(const std::string& text) const {
  throw UserError("{}:{}: {}", lines_.path(), lines_.line(), text);
}

}  // namespace dtrain
