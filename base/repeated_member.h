// RepeatedMember: finds a name that a JSON object has twice. The parser would keep the later one without a
// word. Owner: who parses, for one text. Thread: one.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace dtrain {

class RepeatedMember {
 public:
  // For every event of nlohmann::json's parser, with what it hands over. The name where it is a key that its
  // object has already; else null. Valid as long as `parsed`.
  const std::string* See(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) {
      names_.emplace_back();
    } else if (event == Event::object_end) {
      names_.pop_back();
    } else if (event == Event::key) {
      const auto* const name = parsed.get_ptr<const std::string*>();
      if (!names_.back().insert(*name).second) return name;
    }
    return nullptr;
  }

 private:
  std::vector<std::set<std::string>> names_;  // of each open object
};

}  // namespace dtrain
