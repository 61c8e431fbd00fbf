#include "trainer/export/exported_model.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "trainer/config/fields.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

std::string JsonList(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

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
      {"producer", std::string("dtrain ") + kVersion},
      {"model.kind", KindName(config.model.kind)},
      {"global_step", fmt::format("{}", checkpoint.manifest().step)}};
  if (config.model.kind == ModelKind::kMlp) {
    const Field& field = *FindField("model.activation");
    all.emplace_back("model.activation", ValueText(field, field.get(config)));
  }
  if (!form.classes.empty()) all.emplace_back("classes", JsonList(form.classes));
  if (!form.features.empty()) all.emplace_back("features", JsonList(form.features));
  if (pixels) all.emplace_back("scale", "{\"divide_by\":255}");
  if (!form.scale.shift.empty()) {
    const nlohmann::json scale = {{"shift", form.scale.shift}, {"factor", form.scale.factor}};
    all.emplace_back("scale", scale.dump());
  }
  return all;
}

}  // namespace dtrain
