#include "trainer/ps/row_desk.h"

#include <algorithm>
#include <utility>

#include "trainer/config/config.h"

namespace dtrain {

// A gradient names the oldest of in_flight + 1 lists; one more may come when a worker enters again.
RowDesk::RowDesk(const Config& config, const Shard& shard)
    : shard_(shard),
      max_kept_(static_cast<size_t>(config.train.in_flight) + 2),
      lists_(shard.has_table() ? config.cluster.worker.size() * static_cast<size_t>(shard.block_count())
                               : 0) {}

std::string RowDesk::Take(int worker, int64_t block, uint64_t request, net::TensorView keys, uint32_t count,
                          bool keeps, uint64_t of) {
  if (Find(worker, block, request) != nullptr) return std::string();
  Asked asked{request, FreeList()};
  std::string wrong = DecodeKeys(keys, count, shard_.BlockRows(block), asked.keys.get());
  Lists& lists = lists_[IndexOf(worker, block)];
  if (!wrong.empty()) {
    Drop(std::move(asked));
  } else if (!keeps) {
    Drop(std::exchange(lists.read, std::move(asked)));
  } else {
    if (lists.kept.size() == max_kept_) {
      const auto oldest = lists.kept.begin() + (lists.kept.front().request == of ? 1 : 0);
      Drop(std::move(*oldest));
      lists.kept.erase(oldest);
    }
    lists.kept.push_back(std::move(asked));
  }
  return wrong;
}

std::shared_ptr<KeyList> RowDesk::FreeList() {
  if (free_.empty()) return std::make_shared<KeyList>();
  std::shared_ptr<KeyList> list = std::move(free_.back());
  free_.pop_back();
  return list;
}

void RowDesk::Drop(Asked asked) {
  // A gradient that waits for its round may still name it.
  if (asked.keys != nullptr && asked.keys.use_count() == 1) free_.push_back(std::move(asked.keys));
}

RowDesk::Keys RowDesk::Find(int worker, int64_t block, uint64_t request) const {
  if (shard_.table(block) == nullptr) return none_;
  const Lists& lists = lists_[IndexOf(worker, block)];
  if (lists.read.keys != nullptr && lists.read.request == request) return lists.read.keys;
  const auto found = std::find_if(lists.kept.rbegin(), lists.kept.rend(),
                                  [&](const Asked& asked) { return asked.request == request; });
  return found == lists.kept.rend() ? nullptr : found->keys;
}

void RowDesk::Forget(int worker) {
  if (lists_.empty()) return;
  for (int64_t block = 0; block < shard_.block_count(); ++block) lists_[IndexOf(worker, block)] = Lists();
}

bool RowDesk::Split(net::TensorView payload, size_t key_bytes, Parts* parts) {
  if (key_bytes > payload.size) return false;
  parts->values = {payload.data, payload.size - key_bytes};
  parts->keys = {payload.data + parts->values.size, key_bytes};
  return true;
}

BlockGradient GradientIn(const net::Message& message, const wire::Push& push, const KeyList& keys) {
  RowDesk::Parts parts;
  RowDesk::Split(net::Tensor(message, push), push.key_bytes(), &parts);
  return {parts.values, keys};
}

}  // namespace dtrain
