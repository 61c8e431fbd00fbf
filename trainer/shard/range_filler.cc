#include "trainer/shard/range_filler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// The time of one turn: short beside failure.detect_s, long beside the other work of a waiting loop.
constexpr milliseconds kTurn{20};

}  // namespace

RangeFiller::RangeFiller(Parts parts)
    : parts_(std::move(parts)),
      slots_(SlotsOf(parts_.config)),
      pieces_(PartsOf(parts_.layout, parts_.ps, slots_.counts())) {}

void RangeFiller::Take(const FillOrder& order) {
  if (order.number < order_.number || order.number == 0) return;
  if (order.number > order_.number) {
    if (parts_.shard.initialised()) return;  // its values count already
    order_ = order;
    return Begin();
  }
  if (state_ != State::kDone) return;
  if (order.keep && outcome_.error.empty() && !parts_.shard.initialised()) {
    parts_.shard.SetRestored(static_cast<uint64_t>(order_.step));
  }
  outcome_.kept = parts_.shard.initialised();
  tells_ = true;
}

void RangeFiller::Begin() {
  state_ = State::kIdle;  // whatever became of an order before this one
  outcome_ = {order_.number, "", false};
  tells_ = false;
  reader_.reset();
  parts_.shard.SetCounts(order_.earlier_updates, order_.decay_steps);
  if (order_.checkpoint.empty()) {
    state_ = State::kMaking;
    return;
  }
  parts_.shard.BeginRestore(static_cast<uint64_t>(order_.step));
  const std::string path = PathHere();
  if (!path.empty() && OpenHere(path)) return;
  if (state_ != State::kDone) BeginToFetch();
}

// The path to read here; empty: the pieces come from ps 0. A path in a message must also be in the config.
std::string RangeFiller::PathHere() const {
  const CheckpointConfig& config = parts_.config.checkpoint;
  const bool leads = parts_.ps == 0;
  if (IsCheckpointName(order_.checkpoint) && !config.dir.empty()) {
    return leads || parts_.sees_directory() ? config.dir + "/" + order_.checkpoint : "";
  }
  const bool named = IsChoiceOf(CheckpointsOf(config.resume), order_.checkpoint) ||
                     IsChoiceOf(CheckpointsOf(config.start_from), order_.checkpoint);
  return leads || named ? order_.checkpoint : "";
}

// False: the checkpoint is not here, or is another one. On ps 0, which has chosen it, that is an error.
bool RangeFiller::OpenHere(const std::string& path) {
  std::string problem = "it was replaced a moment ago";
  state_ = State::kReading;
  try {
    reader_ = std::make_unique<CheckpointReader>(path);
    order_.begins ? reader_->BeginWith(parts_.config, parts_.layout)
                  : reader_->CheckFits(parts_.layout, slots_);
    if (reader_->manifest().checksum == order_.manifest) {
      GoTo(0);
      return true;
    }
  } catch (const BadCheckpoint& bad) {
    problem = bad.problem();
  } catch (const UserError& misfit) {
    problem = misfit.what();
  }
  reader_.reset();
  if (parts_.ps == 0) {
    End(problem);
  } else {
    state_ = State::kIdle;
    parts_.log.Info("gets its part of {} from ps 0: {}", ShortText(order_.checkpoint), problem);
  }
  return false;
}

// Goes to the first piece of a part, or of a later one if it has none.
void RangeFiller::GoTo(size_t part) {
  here_.clear();
  asked_ = 0;
  for (next_ = {part, 0}; !has_all(); ++next_.part) {
    const PartPieces& its = *pieces_[next_.part];
    count_ = reader_ ? its.CountIn(*reader_) : its.count();
    if (count_ > 0) return;
  }
}

void RangeFiller::BeginToFetch() {
  state_ = State::kFetching;
  GoTo(0);
  has_all() ? End("") : AskForMore(Clock::now());
}

void RangeFiller::AskForMore(TimePoint now) {
  ask_again_ = now + kAskForPieceAgain;
  for (; asked_ < std::min(count_, next_.number + kOpenPieces); ++asked_) {
    parts_.ask(order_.number, {next_.part, asked_});
  }
  here_.resize(static_cast<size_t>(asked_));
}

void RangeFiller::OnPiece(const wire::Piece& piece, net::TensorView values) {
  if (state_ != State::kFetching || piece.number() != order_.number || piece.part() != next_.part) return;
  if (piece.piece() >= static_cast<uint64_t>(asked_) || here_[piece.piece()]) return;
  const uint64_t sum = piece.checksum();
  if (sum != 0 && sum != net::PayloadChecksum(values.data, values.size)) return;
  const auto number = static_cast<int64_t>(piece.piece());
  if (values.size == 0 && pieces_[next_.part]->count() == PartPieces::kOpenEnd) {
    count_ = std::min(count_, number);  // it is behind the last one
  } else if (!parts_.shard.Put({next_.part, number}, values).empty()) {
    return;
  }
  here_[piece.piece()] = true;
  while (next_.number < asked_ && here_[static_cast<size_t>(next_.number)]) ++next_.number;
  if (next_.number >= count_) GoTo(next_.part + 1);
  has_all() ? End("") : AskForMore(Clock::now());
}

void RangeFiller::ReadNext() {
  pieces_[next_.part]->Read(reader_.get(), next_.number, &read_);
  const std::string wrong = parts_.shard.Put(next_, {read_.data(), read_.size()});
  DT_CHECK(wrong.empty(), wrong, next_.part, next_.number);
  if (++next_.number == count_) GoTo(next_.part + 1);
}

void RangeFiller::ReadSome() {
  const TimePoint end = Clock::now() + kTurn;
  try {
    while (!has_all() && Clock::now() < end) ReadNext();
  } catch (const BadCheckpoint& bad) {
    return End(bad.problem());
  }
  if (has_all()) End("");
}

void RangeFiller::End(const std::string& error) {
  state_ = State::kDone;
  reader_.reset();
  std::vector<std::byte>().swap(read_);
  outcome_.error = ShortText(error);
  outcome_.kept = parts_.shard.initialised();
  tells_ = true;
}

// Large ranges take longer than a ps may be silent, hence turns.
void RangeFiller::Turn(TimePoint now) {
  if (state_ == State::kMaking && parts_.shard.Initialise(Clock::now() + kTurn)) End("");
  if (state_ == State::kReading) ReadSome();
  if (state_ == State::kFetching && now >= ask_again_) {
    ask_again_ = now + kAskForPieceAgain;
    for (int64_t piece = next_.number; piece < asked_; ++piece) {
      if (!here_[static_cast<size_t>(piece)]) parts_.ask(order_.number, {next_.part, piece});
    }
  }
  if (std::exchange(tells_, false)) parts_.tell_outcome(outcome_);
}

}  // namespace dtrain
