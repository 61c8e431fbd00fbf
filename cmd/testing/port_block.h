// PortBlock: ports that follow each other, kept from others while dtrain may listen at them.
// Owner: the test. Thread: the test's.
#pragma once

#include <string>
#include <vector>

namespace dtrain::testing {

class PortBlock {
 public:
  // `count` ports from one of first, first + step, ... on, at every one of `hosts`, which are 127.x.y.z.
  // `tries`: how many of these blocks there are.
  PortBlock(const std::vector<std::string>& hosts, int count, int first, int step, int tries);
  ~PortBlock();
  PortBlock(const PortBlock&) = delete;
  PortBlock& operator=(const PortBlock&) = delete;

  int first() const { return first_; }

 private:
  bool Take(const std::vector<std::string>& hosts, int count);
  void Free();

  int first_ = 0;
  std::vector<int> sockets_;  // bound, not listening, with SO_REUSEADDR as dtrain's
};

}  // namespace dtrain::testing
