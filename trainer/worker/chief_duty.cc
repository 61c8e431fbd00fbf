#include "trainer/worker/chief_duty.h"

#include <optional>
#include <utility>

#include "trainer/peer/this_host.h"

namespace dtrain {

void ChiefDuty::OpenCheckpoints() {
  const bool writes = config_.checkpoint.writer == CheckpointWriter::kChief;
  if (checkpoints_ != nullptr || !writes || config_.checkpoint.dir.empty()) return;
  checkpoints_ = std::make_unique<CheckpointDirectory>(config_.checkpoint.dir);
  checkpoints_->Prepare();
}

void ChiefDuty::Take(uint32_t term) {
  if (term > 1 && term != term_) log_.Info("is the chief from now on (term {})", term);
  term_ = term;
  const bool has_saver = saver_ != nullptr && saver_->run() == client_.run() && saver_->term() == term;
  if (has_saver && term > 0) return;
  saver_.reset();
  if (term == 0) return;
  OpenCheckpoints();
  if (checkpoints_ == nullptr) return;
  checkpoints_->TryClaim(TaskAndProcess(config_.cluster, {Role::kWorker, worker_}));
  std::optional<InputForm> inputs;
  if (data_.loaded().train != nullptr) inputs = data_.loaded().form;  // else another worker feeds this one
  saver_ = std::make_unique<Saver>(config_, layout_, std::move(inputs), *checkpoints_, transport_,
                                   client_.run(), term, log_);
}

void ChiefDuty::TakeSeen() {
  seen_term_ = client_.term();
  if (seen_term_ > term_ && client_.chief() == worker_) Take(seen_term_);
}

}  // namespace dtrain
