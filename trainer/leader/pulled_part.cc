#include "trainer/leader/pulled_part.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/model/layout.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/shard/range_filler.h"

namespace dtrain {

PulledPart::PulledPart(const Layout& layout, int ps, int64_t slots, uint64_t number,
                       const std::string& directory, std::function<void(int64_t piece)> ask)
    : layout_(layout),
      ps_(ps),
      slots_(slots),
      number_(number),
      ask_(std::move(ask)),
      count_(PartPieces(layout, ps, slots)),
      ask_again_(Clock::now() + kAskForPieceAgain),
      writing_(std::async(std::launch::async, [this, directory] { return Write(directory); })) {
  Tick(Clock::now());
}

PulledPart::~PulledPart() { GiveUp(); }

void PulledPart::GiveUp() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  here_.clear();
  changed_.notify_all();
}

bool PulledPart::ended() const {
  return !writing_.valid() || writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::optional<ShardSaver::Outcome> PulledPart::Poll() {
  if (!writing_.valid() || !ended()) return std::nullopt;
  return writing_.get();
}

void PulledPart::Tick(TimePoint now) {
  std::vector<int64_t> missing;
  {
    const std::lock_guard lock(mutex_);
    if (given_up_) return;
    for (; asked_ < std::min(count_, written_ + kOpenPieces); ++asked_) missing.push_back(asked_);
    if (now >= ask_again_) {
      missing.clear();
      for (int64_t piece = written_; piece < asked_; ++piece) {
        if (here_.count(piece) == 0) missing.push_back(piece);
      }
    }
  }
  if (missing.empty()) return;
  ask_again_ = now + kAskForPieceAgain;
  for (const int64_t piece : missing) ask_(piece);
}

bool PulledPart::Fits(const wire::Piece& piece, net::TensorView values) const {
  if (piece.number() != number_ || piece.piece() >= static_cast<uint64_t>(asked_)) return false;
  if (!PieceFits(layout_, ps_, slots_, static_cast<int64_t>(piece.piece()), values.size)) return false;
  const uint64_t sum = piece.checksum();
  return sum == 0 || sum == net::PayloadChecksum(values.data, values.size);
}

void PulledPart::OnPiece(net::Message message) {
  const wire::Piece& piece = *net::Decode(message)->body_as_Piece();
  if (!Fits(piece, net::Tensor(message, piece))) return;
  const auto number = static_cast<int64_t>(piece.piece());
  ask_again_ = Clock::now() + kAskForPieceAgain;
  {
    const std::lock_guard lock(mutex_);
    if (number < written_ || given_up_) return;
    here_.emplace(number, std::move(message));
    changed_.notify_all();
  }
  Tick(Clock::now());
}

std::optional<net::Message> PulledPart::WaitForPiece() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return given_up_ || here_.count(written_) != 0; });
  if (given_up_) return std::nullopt;
  return std::move(here_.extract(written_).mapped());
}

// Runs on the thread.
ShardSaver::Outcome PulledPart::Write(const std::string& directory) {
  try {
    RangeWriter writer(layout_, ps_, slots_, directory);
    for (int64_t piece = 0; piece < count_; ++piece) {
      const std::optional<net::Message> message = WaitForPiece();
      if (!message) return {{}, "the checkpoint was given up"};
      const net::TensorView values = net::Tensor(*message, *net::Decode(*message)->body_as_Piece());
      if (layout_.has_hash_table() && values.size == 0) break;  // the end
      writer.Add(values);
      const std::lock_guard lock(mutex_);
      here_.erase(written_++);  // it may have come again meanwhile
    }
    return {writer.Finish(), ""};
  } catch (const std::exception& error) {
    return {{}, ShortText(FailureText(error))};
  }
}

}  // namespace dtrain
