#include "trainer/leader/pulled_part.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/model/layout.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/shard/range_filler.h"

namespace dtrain {

PulledPart::PulledPart(const Layout& layout, int ps, SlotCounts slots, uint64_t number,
                       const std::string& directory, std::function<void(Piece piece)> ask)
    : layout_(layout),
      ps_(ps),
      slots_(slots),
      number_(number),
      ask_(std::move(ask)),
      parts_(PartsOf(layout, ps, slots)),
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
  std::vector<Piece> missing;
  {
    const std::lock_guard lock(mutex_);
    if (given_up_ || next_.part == parts_.size()) return;
    if (asked_.part != next_.part) asked_ = {next_.part, 0};
    const int64_t end = std::min(parts_[next_.part]->count(), next_.number + kOpenPieces);
    for (; asked_.number < end; ++asked_.number) missing.push_back(asked_);
    if (now >= ask_again_) {
      missing.clear();
      for (int64_t piece = next_.number; piece < asked_.number; ++piece) {
        if (here_.count(piece) == 0) missing.push_back({next_.part, piece});
      }
    }
  }
  if (missing.empty()) return;
  ask_again_ = now + kAskForPieceAgain;
  for (const Piece& piece : missing) ask_(piece);
}

bool PulledPart::Fits(const wire::Piece& piece, net::TensorView values) const {
  if (piece.number() != number_ || piece.part() != asked_.part) return false;
  if (piece.piece() >= static_cast<uint64_t>(asked_.number)) return false;
  if (!parts_[asked_.part]->Fits(static_cast<int64_t>(piece.piece()), values.size)) return false;
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
    if (asked_.part != next_.part || number < next_.number || given_up_) return;
    here_.emplace(number, std::move(message));
    changed_.notify_all();
  }
  Tick(Clock::now());
}

std::optional<net::Message> PulledPart::WaitForPiece() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return given_up_ || here_.count(next_.number) != 0; });
  if (given_up_) return std::nullopt;
  return std::move(here_.extract(next_.number).mapped());
}

// The piece may have come again meanwhile.
void PulledPart::GoTo(Piece piece) {
  const std::lock_guard lock(mutex_);
  piece.part == next_.part ? void(here_.erase(next_.number)) : here_.clear();
  next_ = piece;
}

// Runs on the thread.
ShardSaver::Outcome PulledPart::Write(const std::string& directory) {
  try {
    PartsWriter writer(layout_, ps_, slots_, directory);
    for (size_t part = 0; part < parts_.size(); GoTo({++part, 0})) {
      const int64_t count = parts_[part]->count();
      for (int64_t piece = 0; piece < count; GoTo({part, ++piece})) {
        const std::optional<net::Message> message = WaitForPiece();
        if (!message) return {{}, "the checkpoint was given up"};
        const net::TensorView values = net::Tensor(*message, *net::Decode(*message)->body_as_Piece());
        if (count == PartPieces::kOpenEnd && values.size == 0) break;
        writer.Add(part, values);
      }
    }
    return {writer.Finish(), ""};
  } catch (const std::exception& error) {
    return {{}, ShortText(FailureText(error))};
  }
}

}  // namespace dtrain
