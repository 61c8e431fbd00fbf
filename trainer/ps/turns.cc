#include "trainer/ps/turns.h"

#include <algorithm>

namespace dtrain {

void Turns::Place(int worker, const std::string& host, int64_t at_once) {
  At(worker).host = host;
  At(worker).at_once = at_once;
}

bool Turns::Free(int worker, TimePoint now) const {
  const Standing& own = workers_[static_cast<size_t>(worker)];
  if (own.at_once == 0) return true;
  const int64_t busy = std::count_if(workers_.begin(), workers_.end(), [&](const Standing& other) {
    return other.begun && now - *other.begun < kLongest && other.host == own.host;
  });
  return busy < own.at_once;
}

}  // namespace dtrain
