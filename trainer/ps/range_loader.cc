#include "trainer/ps/range_loader.h"

#include "base/clock.h"
#include "base/error.h"
#include "trainer/checkpoint/bad_checkpoint.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/short_text.h"

namespace dtrain {
namespace {

// Of one turn: short beside failure.detect_s, long beside the other work of a loop that waits.
constexpr milliseconds kTurn{20};

}  // namespace

RangeLoader::RangeLoader(const Config& config, const Layout& layout, int ps, ParameterShard& shard)
    : config_(config), layout_(layout), ps_(ps), shard_(shard), slots_(SlotNames(config)) {}

// What is wrong with the checkpoint is the outcome.
template <typename Work>
void RangeLoader::Guarded(Work&& work) {
  std::string error;
  bool misfit = false;
  try {
    return work();
  } catch (const BadCheckpoint& bad) {
    error = bad.problem();
  } catch (const UserError& differs) {
    error = differs.what();
    misfit = true;
  }
  reader_.reset();
  outcome_ = Outcome{ShortText(error), misfit, 0, "", std::nullopt};
}

void RangeLoader::Begin(const Question& question, const std::string& name) {
  if (question == question_) return;
  question_ = question;
  outcome_.reset();
  reader_.reset();
  Guarded([&] { Open(name); });
}

void RangeLoader::Open(const std::string& name) {
  const CheckpointConfig& config = config_.checkpoint;
  const bool listed = IsCheckpointName(name) && !config.dir.empty();
  if (!listed && name != config.resume) {
    throw BadCheckpoint(ShortText(name),
                        "it is neither in checkpoint.dir nor the checkpoint.resume of this ps");
  }
  auto reader = std::make_unique<CheckpointReader>(listed ? config.dir + "/" + name : name);
  reader->CheckFits(layout_, slots_);
  CheckKeys(reader->path(), config_);
  pieces_ = PiecesOf(layout_, ps_, static_cast<int>(slots_.size()));
  next_ = 0;
  reader_ = std::move(reader);
}

void RangeLoader::LoadNext() {
  const Piece& piece = pieces_[next_++];
  const std::string& slot =
      piece.slot == 0 ? CheckpointReader::kWeights : slots_[static_cast<size_t>(piece.slot) - 1];
  values_.resize(static_cast<size_t>(piece.count));
  reader_->Read(layout_.variables[static_cast<size_t>(piece.variable)].name, slot, piece.first, piece.count,
                values_.data());
  shard_.Restore(piece.slot, piece.begin,
                 {reinterpret_cast<const std::byte*>(values_.data()), values_.size() * sizeof(float)});
}

bool RangeLoader::Turn() {
  if (!busy()) return false;
  const TimePoint end = Clock::now() + kTurn;
  Guarded([&] {
    while (next_ < pieces_.size() && Clock::now() < end) LoadNext();
  });
  if (busy() && next_ == pieces_.size()) {
    const Manifest& manifest = reader_->manifest();
    // One ps is enough to tell what it is of.
    outcome_ = Outcome{"", false, manifest.step, manifest.positions,
                       ps_ == 0 ? manifest.inputs : std::optional<InputForm>()};
    reader_.reset();
  }
  return !busy();
}

}  // namespace dtrain
