// StateImage: the state of the leader as bytes in numbered sections (base/archive.h), and a copy of it in
// another process that is kept up to date by what has changed. Owner: ReplicaLink, ReplicaHolder. Thread: the
// ps loop.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

class StateImage {
 public:
  // Sets a section to `bytes`, and appends to `changes` what has changed of it.
  void Put(size_t section, std::string_view bytes, std::string* changes);
  // Carries out changes of another image. False: they are malformed.
  bool Take(std::string_view changes);
  // Empty: it was never put.
  std::string_view section(size_t section) const {
    return section < sections_.size() ? std::string_view(sections_[section]) : std::string_view();
  }
  // All of it, as changes of an empty one.
  std::string All() const;
  void Clear() { sections_.clear(); }
  bool empty() const { return sections_.empty(); }

 private:
  std::vector<std::string> sections_;
};

}  // namespace dtrain
