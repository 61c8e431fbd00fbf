// Draft: a config that is being loaded, with what its user wrote of each key and where; and the rules that no
// key alone can tell: missing keys, keys without effect, keys that contradict one another. What needs the
// data itself is checked where the data is read. Owner: the loader. Thread: any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/load_options.h"
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

// Sets the defaults that depend on other keys, puts the defaults back of keys that a flag has made
// meaningless, and adds what breaks a rule to the problems.
void CheckRules(const LoadOptions& options, Draft* draft);

}  // namespace dtrain
