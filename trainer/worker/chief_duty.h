// ChiefDuty: whether this worker is the chief, as ps 0 says, and what it has then: the directory of the
// checkpoints, and for one term in one run epoch the saver that writes there.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <memory>

#include "base/log.h"
#include "net/channel.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/worker/ps_client.h"
#include "trainer/worker/saver.h"
#include "trainer/worker/worker_data.h"

namespace dtrain {

class ChiefDuty {
 public:
  ChiefDuty(const Config& config, int worker, const Layout& layout, const PsClient& client,
            const WorkerData& data, net::Transport& transport, Logger& log)
      : config_(config),
        worker_(worker),
        layout_(layout),
        client_(client),
        data_(data),
        transport_(transport),
        log_(log) {}

  bool is_chief() const { return term_ > 0; }
  // ps 0 says with Start, or at the end, of which term this worker is the chief; 0: it is not. Its
  // checkpoints say of the data what is known by then.
  void Take(uint32_t term);
  // It says so with Start: a later term may have been seen before that, and is to be looked at again.
  void LookAnew() { seen_term_ = 0; }
  // Whether the chief was lost meanwhile, and this worker is it now. To be called now and then.
  void Look() {
    if (client_.term() != seen_term_) TakeSeen();
  }

  // The directory, where the chief writes into one; is there from now on. Throws where that cannot be.
  void OpenCheckpoints();
  CheckpointDirectory* checkpoints() const { return checkpoints_.get(); }  // null: not opened, or none

 private:
  void TakeSeen();

  const Config& config_;
  const int worker_;
  const Layout& layout_;
  const PsClient& client_;
  const WorkerData& data_;
  net::Transport& transport_;
  Logger& log_;
  uint32_t term_ = 0;       // 0: it is not the chief
  uint32_t seen_term_ = 0;  // that ps 0 said last of any chief
  std::unique_ptr<CheckpointDirectory> checkpoints_;
  std::unique_ptr<Saver> saver_;
};

}  // namespace dtrain
