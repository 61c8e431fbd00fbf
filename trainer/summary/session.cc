#include "trainer/summary/session.h"

#include "base/json.h"
#include "trainer/config/dump.h"
#include "trainer/summary/event.pb.h"

namespace dtrain {
namespace {

// These names are TensorBoard's.
constexpr char kHparams[] = "hparams";
constexpr char kStartTag[] = "_hparams_/session_start_info";
constexpr char kEndTag[] = "_hparams_/session_end_info";

bool BeginsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

event::HParam HParamOf(const Json& value) {
  event::HParam hparam;
  if (value.is_boolean()) {
    hparam.set_bool_value(value.get<bool>());
  } else if (value.is_number()) {
    hparam.set_number_value(value.get<double>());
  } else {
    hparam.set_string_value(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return hparam;
}

// The keys of model and train that have a value, and the size of the cluster.
void AddHParams(const Config& config, event::SessionStartInfo* start) {
  auto& hparams = *start->mutable_hparams();
  const Json all = FlatConfig(config);
  for (const auto& [key, value] : all.items()) {
    const bool counts = BeginsWith(key, "model.") || BeginsWith(key, "train.") || key == "data.scale";
    if (counts && !value.is_null()) hparams[key] = HParamOf(value);
  }
  hparams["cluster.ps"] = HParamOf(Json(config.cluster.ps.size()));
  hparams["cluster.worker"] = HParamOf(Json(config.cluster.worker.size()));
}

void AddHParamsValue(const char* tag, const event::HParamsPluginData& data, event::Summary* summary) {
  event::Summary::Value& value = *summary->add_value();
  value.set_tag(tag);
  // A value must have one: a tensor without elements.
  value.mutable_tensor()->set_dtype(event::DT_FLOAT);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim();
  event::SummaryMetadata::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name(kHparams);
  plugin.set_content(data.SerializeAsString());
}

// Markdown: a block of code, a line for each key that has a value.
void AddConfigText(const Config& config, event::Summary* summary) {
  std::string text;
  const Json all = FlatConfig(config);
  for (const auto& [key, value] : all.items()) {
    if (!value.is_null()) text += "    " + key + ": " + value.dump() + "\n";
  }
  event::Summary::Value& value = *summary->add_value();
  value.set_tag("config");
  value.mutable_tensor()->set_dtype(event::DT_STRING);
  value.mutable_tensor()->mutable_tensor_shape();
  value.mutable_tensor()->add_string_val(text);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_metadata()->set_summary_description("Every key of the config with its value in effect.");
}

}  // namespace

std::string SessionStart(const Config& config, double start_s) {
  event::Summary summary;
  event::HParamsPluginData data;
  data.mutable_session_start_info()->set_start_time_secs(start_s);
  AddHParams(config, data.mutable_session_start_info());
  AddHParamsValue(kStartTag, data, &summary);
  AddConfigText(config, &summary);
  return summary.SerializeAsString();
}

std::string SessionEnd(bool is_done, double end_s) {
  event::Summary summary;
  event::HParamsPluginData data;
  event::SessionEndInfo& end = *data.mutable_session_end_info();
  end.set_status(is_done ? event::SessionEndInfo::SUCCESS : event::SessionEndInfo::FAILURE);
  end.set_end_time_secs(end_s);
  AddHParamsValue(kEndTag, data, &summary);
  return summary.SerializeAsString();
}

}  // namespace dtrain
