// RunFiles: what the directory of a run says about it (docs/results.md, docs/watching.md), as far as it can
// be read. Nothing in it is trusted: any file may be missing, damaged, or written by somebody else. Thread:
// any; plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

struct RunFiles {
  std::string path;  // the directory
  std::string name;
  Json record;  // run.json
  Json result;  // null: it has not ended, or was killed
  Json status;  // status.json; null: there is none
  Json config;  // every key with its value in effect, without secrets; null: not known
  // done, already_done, stopped, diverged, peer_lost or failed, as in the result; without one "running", or
  // "dead" if it can be seen that nobody works on it.
  std::string state;
  // Sentences on what could not be read.
  std::vector<std::string> problems;

  bool ended_well() const { return state == "done" || state == "already_done"; }
  // The directory of logs or summaries: where the record says, or, if the directory was moved, where it is in
  // a directory of a run.
  std::string Place(const char* record_key, const char* name) const;
};

// Whether `path` is the directory of a run.
bool IsRun(const std::string& path);
// The runs that a directory such as runs/ has, by name.
std::vector<std::string> RunPathsIn(const std::string& directory);
// Returns a result with the keys of today: an older dtrain wrote test_* for the figures of held-out rows.
Json WithPresentKeys(Json result);
// Throws UserError if it is none.
RunFiles ReadRun(const std::string& path);

// A member that is an object, or a list; otherwise null.
const Json& PartOf(const Json& object, const char* key);
const Json& ListOf(const Json& object, const char* key);

// The seconds since 1970 of a time in RFC 3339, "2026-11-27T21:05:01.123+01:00".
std::optional<double> WallSeconds(const std::string& time);

}  // namespace dtrain
