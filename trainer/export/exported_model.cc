#include "trainer/export/exported_model.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "trainer/config/fields.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

std::string KeyText(const char* key, const Config& config) {
  const Field& field = *FindField(key);
  return ValueText(field, field.get(config));
}

}  // namespace

std::string NamesText(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<int64_t> ExportedModel::ShapeOf(const Variable& variable) {
  if (variable.bias) return {variable.rows};
  return {variable.rows, variable.cols};
}

int64_t ExportedModel::bytes() const {
  int64_t values = 0;
  for (const Variable& variable : variables) values += variable.size();
  return values * static_cast<int64_t>(sizeof(float));
}

std::vector<std::pair<std::string, std::string>> ExportedModel::Metadata() const {
  std::vector<std::pair<std::string, std::string>> all = {
      {"producer", std::string(kProducer) + kVersion},
      {"model.kind", KindName(config.model.kind)},
      {"global_step", fmt::format("{}", checkpoint.manifest().step)}};
  if (config.model.kind == ModelKind::kMlp) {
    all.emplace_back("model.activation", KeyText("model.activation", config));
  }
  if (!form.classes.empty()) all.emplace_back("classes", NamesText(form.classes));
  if (!form.features.empty()) all.emplace_back("features", NamesText(form.features));
  // Where columns have no names it says which are features.
  if (form.features.empty() && form.label_column >= 0) {
    all.emplace_back("label_column", fmt::format("{}", form.label_column));
  }
  if (pixels) all.emplace_back("scale", "{\"divide_by\":255}");
  if (!form.scale.shift.empty()) {
    const nlohmann::json scale = {{"shift", form.scale.shift}, {"factor", form.scale.factor}};
    all.emplace_back("scale", scale.dump());
    all.emplace_back("data.scale", KeyText("data.scale", config));
  }
  return all;
}

}  // namespace dtrain
