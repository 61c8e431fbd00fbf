// Positions and Dealt as JSON. What is read may come from anywhere: a damaged file, another version, a peer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/data/positions.h"

namespace dtrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostText = 1 << 22;
constexpr int64_t kMostNumber = int64_t{1} << 53;  // exact in every reader of JSON
constexpr int64_t kMostDevices = 1 << 16;

Json ToValue(const Dealt& dealt) {
  Json deals = Json::array();
  for (const Deal& deal : dealt.deals) {
    deals.push_back({{"devices", deal.devices}, {"local_steps", deal.local_steps}});
  }
  return {{"epoch", dealt.epoch},
          {"deals", std::move(deals)},
          {"first_batch", dealt.first_batch},
          {"other_steps", dealt.other_steps}};
}

// A whole number of [least, most] in `object`, which may be anything.
bool Read(const Json& object, const char* key, int64_t least, int64_t most, int64_t* out) {
  if (!object.is_object()) return false;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(most)) return false;
  *out = found->get<int64_t>();
  return *out >= least && *out <= most;
}

// A list of numbers that are 0 or more, one at least.
bool Read(const Json& object, const char* key, std::vector<int64_t>* out) {
  if (!object.is_object()) return false;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array() || found->empty()) return false;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMostNumber))
      return false;
    out->push_back(value.get<int64_t>());
  }
  return true;
}

bool ReadDevices(const Json& object, int64_t* out) { return Read(object, "devices", 1, kMostDevices, out); }

bool FromValue(const Json& value, Dealt* dealt) {
  if (!Read(value, "epoch", 0, kMostNumber, &dealt->epoch) ||
      !Read(value, "first_batch", 0, kMostNumber, &dealt->first_batch) ||
      !Read(value, "other_steps", -kMostNumber, kMostNumber, &dealt->other_steps)) {
    return false;
  }
  const auto deals = value.find("deals");
  if (deals == value.end() || !deals->is_array()) return false;
  for (const Json& one : *deals) {
    Deal deal;
    if (!ReadDevices(one, &deal.devices) || !Read(one, "local_steps", &deal.local_steps)) return false;
    dealt->deals.push_back(std::move(deal));
  }
  return true;
}

bool FromValue(const Json& value, Positions* positions) {
  if (!Read(value, "local_steps", &positions->local_steps) ||
      !Read(value, "examples", &positions->examples) ||
      positions->examples.size() != positions->local_steps.size() ||
      !Read(value, "other_examples", 0, kMostNumber, &positions->other_examples) ||
      !ReadDevices(value, &positions->devices)) {
    return false;
  }
  const auto dealt = value.find("dealt"), order = value.find("order");
  if (dealt == value.end() || !FromValue(*dealt, &positions->dealt)) return false;
  if (order == value.end() || !order->is_object()) return false;
  for (const auto& [key, text] : order->items()) {
    if (!text.is_string()) return false;
    positions->order.emplace_back(key, text.get<std::string>());
  }
  return true;
}

template <typename T>
bool FromText(const std::string& text, T* out) {
  if (text.size() > kMostText) return false;
  const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  T read;
  if (!FromValue(value, &read)) return false;
  *out = std::move(read);
  return true;
}

}  // namespace

std::string ToJson(const Dealt& dealt) { return ToValue(dealt).dump(); }
bool FromJson(const std::string& text, Dealt* dealt) { return FromText(text, dealt); }

std::string ToJson(const Positions& positions) {
  Json order = Json::object();
  for (const auto& [key, text] : positions.order) order[key] = text;
  const Json value = {{"local_steps", positions.local_steps},       {"examples", positions.examples},
                      {"other_examples", positions.other_examples}, {"devices", positions.devices},
                      {"dealt", ToValue(positions.dealt)},          {"order", std::move(order)}};
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}
bool FromJson(const std::string& text, Positions* positions) { return FromText(text, positions); }

}  // namespace dtrain
