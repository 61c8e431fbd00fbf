#include "trainer/shard/range_filler.h"

#include <algorithm>
#include <utility>

#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// The time of one turn: short beside failure.detect_s, long beside the other work of a waiting loop.
constexpr milliseconds kTurn{20};

}  // namespace

RangeFiller::RangeFiller(Parts parts) : parts_(std::move(parts)), slots_(SlotNames(parts_.config)) {}

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
  next_ = asked_ = 0;
  parts_.shard.SetCounts(order_.earlier_updates, order_.decay_steps);
  if (order_.checkpoint.empty()) {
    state_ = State::kMaking;
    return;
  }
  parts_.shard.BeginRestore();
  const auto slots = static_cast<int64_t>(slots_.size());
  pieces_ = PiecesOf(parts_.layout, parts_.ps, static_cast<int>(slots));
  count_ = pieces_.size();
  if (parts_.layout.has_hash_table()) {
    count_ = static_cast<size_t>(PartPieces(parts_.layout, parts_.ps, slots));
  } else if (parts_.layout.table) {
    count_ += static_cast<size_t>(RowPiecesOf(parts_.layout, parts_.ps, slots).count());
  }
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
      if (parts_.layout.has_hash_table()) {
        count_ = pieces_.size() + reader_->HashPieces(parts_.layout.table->PartOf(parts_.ps));
      }
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

void RangeFiller::BeginToFetch() {
  state_ = State::kFetching;
  here_.clear();
  AskForMore(Clock::now());
  if (count_ == 0) End("");
}

void RangeFiller::AskForMore(TimePoint now) {
  ask_again_ = now + kAskForPieceAgain;
  for (; asked_ < std::min(count_, next_ + kOpenPieces); ++asked_) {
    parts_.ask(order_.number, static_cast<int64_t>(asked_));
  }
  here_.resize(asked_);
}

void RangeFiller::OnPiece(const wire::Piece& piece, net::TensorView values) {
  if (state_ != State::kFetching || piece.number() != order_.number) return;
  if (piece.piece() >= asked_ || here_[piece.piece()]) return;
  const uint64_t sum = piece.checksum();
  if (sum != 0 && sum != net::PayloadChecksum(values.data, values.size)) return;
  if (!TakePiece(piece.piece(), values)) return;
  here_[piece.piece()] = true;
  while (next_ < asked_ && here_[next_]) ++next_;
  AskForMore(Clock::now());
  if (next_ >= count_) End("");
}

// Of a piece behind those of the range.
RowRange RangeFiller::RowsOf(size_t piece) const {
  return RowPiecesOf(parts_.layout, parts_.ps, static_cast<int64_t>(slots_.size()))
      .At(static_cast<int64_t>(piece - pieces_.size()));
}

// False: these are no values of that piece.
bool RangeFiller::TakePiece(size_t number, net::TensorView values) {
  const auto slots = static_cast<int64_t>(slots_.size());
  if (number >= pieces_.size()) {
    if (parts_.layout.has_hash_table()) return TakeHashPiece(number, values);
    const RowRange rows = RowsOf(number);
    const int64_t width = parts_.layout.table->width();
    return ReadRowPiece(values, rows, width, width * (1 + slots), rows,
                        [this](uint64_t row, const float* of_row) { TakeRow(row, of_row); })
        .empty();
  }
  const Piece& asked = pieces_[number];
  if (values.size != static_cast<size_t>(asked.count) * sizeof(float)) return false;
  parts_.shard.Restore(asked.slot, asked.begin, values);
  return true;
}

// A piece without bytes is behind the last one.
bool RangeFiller::TakeHashPiece(size_t number, net::TensorView values) {
  if (values.size == 0) {
    count_ = std::min(count_, number);
    return true;
  }
  const RowRange rows = parts_.layout.table->PartOf(parts_.ps);
  const int64_t width = parts_.layout.table->width();
  return ReadHashPiece(values, rows, width, width * static_cast<int64_t>(1 + slots_.size()), rows,
                       [this](const HashRow& row) { TakeHashRow(row); })
      .empty();
}

// A run that begins with a checkpoint has made no steps yet.
void RangeFiller::TakeHashRow(HashRow row) {
  row.step = std::min(row.step, static_cast<uint64_t>(order_.step));
  parts_.shard.RestoreHashRow(row);
}

void RangeFiller::ReadNext() {
  if (next_ >= pieces_.size() && parts_.layout.has_hash_table()) {
    return reader_->ReadHashPiece(parts_.layout.table->PartOf(parts_.ps), next_++ - pieces_.size(),
                                  [this](const HashRow& row) { TakeHashRow(row); });
  }
  if (next_ >= pieces_.size()) {
    return reader_->ReadRows(RowsOf(next_++),
                             [this](uint64_t row, const float* values) { TakeRow(row, values); });
  }
  const Piece& piece = pieces_[next_++];
  const std::string& slot =
      piece.slot == 0 ? CheckpointReader::kWeights : slots_[static_cast<size_t>(piece.slot) - 1];
  values_.resize(static_cast<size_t>(piece.count));
  reader_->Read(parts_.layout.variables[static_cast<size_t>(piece.variable)].name, slot, piece.first,
                piece.count, values_.data());
  parts_.shard.Restore(piece.slot, piece.begin,
                       {reinterpret_cast<const std::byte*>(values_.data()), values_.size() * sizeof(float)});
}

void RangeFiller::ReadSome() {
  const TimePoint end = Clock::now() + kTurn;
  try {
    while (next_ < count_ && Clock::now() < end) ReadNext();
  } catch (const BadCheckpoint& bad) {
    return End(bad.problem());
  }
  if (next_ == count_) End("");
}

void RangeFiller::End(const std::string& error) {
  state_ = State::kDone;
  reader_.reset();
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
    for (size_t piece = next_; piece < asked_; ++piece) {
      if (!here_[piece]) parts_.ask(order_.number, static_cast<int64_t>(piece));
    }
  }
  if (std::exchange(tells_, false)) parts_.tell_outcome(outcome_);
}

}  // namespace dtrain
