// Draft: a config that is being loaded, with what its user wrote of each key and where. Owner: the loader.
// Thread: any.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>

#include "trainer/config/config.h"
#include "trainer/config/problems.h"

namespace dtrain {

// How a key was given.
struct Given {
  std::string key;    // or its alias, as the user named it
  std::string shown;  // the value, as the user wrote it
  Place place;
  bool bad = false;  // reported already; the config has the default
};

struct Draft {
  std::string path;                    // the file, named where something is missing
  Config config;                       // the defaults, and over them what was given
  std::map<std::string, Given> given;  // by Field::Name(); without keys whose default was asked for (null)
  Problems problems;
};

// DraftRules: what checks of a draft share: which keys were given and are good so far, and how a value is
// refused. Owner: a check in rules.h.
class DraftRules {
 protected:
  explicit DraftRules(Draft* draft) : draft_(*draft), config_(draft->config) {}

  const Given* Find(const std::string& key) const {
    const auto found = draft_.given.find(key);
    return found == draft_.given.end() ? nullptr : &found->second;
  }
  bool IsBad(const std::string& key) const { return Find(key) != nullptr && Find(key)->bad; }
  bool IsGood(const std::string& key) const { return Find(key) != nullptr && !Find(key)->bad; }
  Place PlaceOf(const std::string& key) const {
    return Find(key) != nullptr ? Find(key)->place : Place{0, 0, draft_.path};
  }
  void Add(const Place& place, const std::string& text) { draft_.problems.Add(place, text); }
  // "place: key = value; rule", of a key that was given; nothing where its value was refused already.
  void Refuse(const std::string& key, const std::string& rule) {
    if (!IsBad(key)) Add(PlaceOf(key), fmt::format("{} = {}; {}", key, Find(key)->shown, rule));
  }

  void RefuseIf(bool broken, const std::string& key, const std::string& rule) {
    if (broken) Refuse(key, rule);
  }

  Draft& draft_;
  Config& config_;
};

}  // namespace dtrain
