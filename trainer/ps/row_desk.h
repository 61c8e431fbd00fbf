// RowDesk: which rows of a table each worker has asked for, by request. A worker's message names the rows of
// its next batch, and the gradient that it computes from their weights names that request in place of the
// rows: so keys travel once.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/shard/shard.h"
#include "trainer/table/key_list.h"

namespace dtrain {

class RowDesk {
 public:
  using Keys = std::shared_ptr<const KeyList>;  // shared with gradients that wait for their round

  // `shard` outlives this. For one without a table, it does nothing.
  RowDesk(const Config& config, const Shard& shard);

  // Takes the `count` keys of a request of `worker`; one that is here already is not read again. `keeps`: a
  // gradient will name them, and as many lists are kept as exchanges may be open; the oldest goes first, but
  // not `of`, which the gradient in the same message names. Returns what is wrong with the keys; empty: they
  // are here.
  std::string Take(int worker, int64_t block, uint64_t request, net::TensorView keys, uint32_t count,
                   bool keeps, uint64_t of = 0);
  // The keys of a request; null: they are not here. A block of no table has an empty list for all requests.
  Keys Find(int worker, int64_t block, uint64_t request) const;
  // The keys of the rows that a gradient is of.
  Keys KeysNamedBy(int worker, const wire::Push& push) const { return Find(worker, push.block(), push.of()); }
  // Calls `visit(worker, block, request, keys)` for the lists that gradients may name, the oldest of each
  // worker and block first.
  template <typename Visit>
  void VisitKept(Visit&& visit) const {
    for (size_t at = 0; at < lists_.size(); ++at) {
      const auto blocks = static_cast<size_t>(shard_.block_count());
      for (const Asked& asked : lists_[at].kept) {
        visit(static_cast<int>(at / blocks), static_cast<int64_t>(at % blocks), asked.request,
              Keys(asked.keys));
      }
    }
  }
  // Forgets all of a worker that has left or begins anew.
  void Forget(int worker);

  // The parts of a push: the values of its gradient, and the keys of the batch after, of `key_bytes`. False:
  // it has fewer bytes.
  struct Parts {
    net::TensorView values;
    net::TensorView keys;
  };
  static bool Split(net::TensorView payload, size_t key_bytes, Parts* parts);

 private:
  struct Asked {
    uint64_t request = 0;
    std::shared_ptr<KeyList> keys;
  };
  // What a worker has asked of a block.
  struct Lists {
    std::deque<Asked> kept;  // oldest first
    Asked read;              // of an evaluation
  };
  size_t IndexOf(int worker, int64_t block) const {
    return static_cast<size_t>(worker) * static_cast<size_t>(shard_.block_count()) +
           static_cast<size_t>(block);
  }

  std::shared_ptr<KeyList> FreeList();
  // Keeps the memory of a list that nothing names any more.
  void Drop(Asked asked);

  const Shard& shard_;
  const Keys none_ = std::make_shared<const KeyList>();
  const size_t max_kept_;
  std::vector<Lists> lists_;  // by worker, then block
  std::vector<std::shared_ptr<KeyList>> free_;
};

// The gradient in a verified message, which is of the rows `keys`.
BlockGradient GradientIn(const net::Message& message, const wire::Push& push, const KeyList& keys);

}  // namespace dtrain
