#include "trainer/leader/pulled_part.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/file_limit.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/shard/range_filler.h"
#include "trainer/table/hash_pieces.h"

namespace dtrain {
namespace {

constexpr uint64_t kNumber = 5;
constexpr int64_t kSlots = 2;

Config Adam(int64_t inputs) {
  Config config = LinearCluster(2, 1, 100);
  config.model.inputs = inputs;
  config.train.optimizer.kind = OptimizerKind::kAdam;
  return config;
}

// The pulled part of ps 1.
struct Pull : PsFixture {
  explicit Pull(int64_t inputs = 4000000) : PsFixture(Adam(inputs), 1), snapshot(shard.TakeSnapshot()) {}
  PulledPart& part() {
    if (!part_) {
      part_ = std::make_unique<PulledPart>(layout, 1, kSlots, kNumber, directory,
                                           [this](dtrain::Piece piece) { asked.push_back(piece.number); });
    }
    return *part_;
  }
  net::Message Piece(int64_t piece, uint64_t number = kNumber, uint64_t checksum = 0) {
    return encoder.Piece({}, number, 0, static_cast<uint64_t>(piece), checksum, *snapshot->Lend({0, piece}));
  }
  void Answer() {
    for (const int64_t piece : std::exchange(asked, {})) part().OnPiece(Piece(piece));
  }
  ShardSaver::Outcome End() {
    return *PollUntil([&] {
      part().Tick(Clock::now());
      Answer();
      return part().Poll();
    });
  }
  // The file that the ps would write itself.
  std::string Written() {
    const std::string here = testing::NewDirectory();
    ShardSaver saver(layout, 1, kSlots);
    saver.Begin(1, shard.TakeSnapshot(), here);
    PollUntil([&] { return saver.Poll(); });
    return testing::FileContent(here + "/" + ShardName(1, 2));
  }

  const std::string directory = testing::NewDirectory();
  std::shared_ptr<ShardSnapshot> snapshot;
  std::vector<int64_t> asked;

 private:
  std::unique_ptr<PulledPart> part_;
};

TEST_CASE("pulled part: the file is what the ps would have written, whatever the order of the pieces") {
  for (const int64_t inputs : {1, 4, 4000000}) {
    Pull f(inputs);
    const ShardSaver::Outcome outcome = f.End();
    CHECK(outcome.error == "");
    CHECK(outcome.part.checksums.size() == PiecesOf(f.layout, 1, kSlots).size());
    CHECK(testing::FileContent(f.directory + "/" + ShardName(1, 2)) == f.Written());
  }
  Pull f;
  f.part();
  const std::vector<int64_t> first = std::exchange(f.asked, {});
  for (auto piece = first.rbegin(); piece != first.rend(); ++piece) f.part().OnPiece(f.Piece(*piece));
  CHECK(f.End().error == "");
  CHECK(testing::FileContent(f.directory + "/" + ShardName(1, 2)) == f.Written());
}

TEST_CASE("pulled part: no more than a few pieces are open, and one that does not come is asked for again") {
  Pull f;
  f.part();
  CHECK(f.asked.size() == kOpenPieces);
  f.part().Tick(Clock::now());
  CHECK(f.asked.size() == kOpenPieces);
  f.asked.clear();
  f.part().OnPiece(f.Piece(1));  // the first piece is lost
  CHECK(f.asked.empty());
  f.part().Tick(Clock::now() + 2 * kAskForPieceAgain);
  CHECK(f.asked == std::vector<int64_t>{0, 2, 3, 4, 5, 6, 7});
  CHECK(f.End().error == "");
}

TEST_CASE("pulled part: what was not asked for, is of another save, or is not what was sent, is dropped") {
  Pull f;
  f.part();
  f.asked.clear();
  f.part().OnPiece(f.Piece(0, kNumber - 1));
  f.part().OnPiece(f.Piece(9));
  f.part().OnPiece(f.Piece(0, kNumber, 12345));
  const float one = 1;
  f.part().OnPiece(f.encoder.Piece({}, kNumber, 0, 0, 0, {&one, sizeof one, nullptr, nullptr}));
  f.part().Tick(Clock::now() + 2 * kAskForPieceAgain);
  CHECK(f.asked.size() == kOpenPieces);
  CHECK(f.End().error == "");
  CHECK(testing::FileContent(f.directory + "/" + ShardName(1, 2)) == f.Written());
}

// It would have no room for the number of its first row.
TEST_CASE("pulled part: a piece of a hash table that is too short for a row is dropped") {
  Config config = LinearCluster(2, 1, 100);
  config.model.kind = ModelKind::kLogistic;
  config.model.table = TableKind::kHash;
  config.model.inputs = kKeyInputs;
  const Layout layout = TableLayoutOf(config.model, 2);
  PulledPart part(layout, 1, 0, kNumber, testing::NewDirectory(), [](Piece) {});
  const HashRow row = {layout.table->PartOf(1).begin + 3, 7, 1, nullptr};
  std::vector<std::byte> bytes(HashPieceBytes(1, 0, 1));
  WriteHashPiece({row}, 1, 1, bytes.data());
  net::Encoder encoder;
  const auto give = [&](uint64_t piece, size_t size) {
    part.OnPiece(encoder.Piece({}, kNumber, 0, piece, 0, {bytes.data(), size, nullptr, nullptr}));
  };
  for (size_t size = 4; size < kMinHashPieceBytes; size += 4) give(0, size);
  give(0, bytes.size());
  give(1, 0);
  const auto outcome = PollUntil([&] { return part.Poll(); });
  CHECK(outcome->error == "");
  CHECK(outcome->part.sizes == std::vector<uint64_t>{bytes.size()});
  CHECK(outcome->part.firsts == std::vector<uint64_t>{row.row});
}

TEST_CASE("pulled part: a disk that is full is the outcome, and so is that it is given up") {
  {
    Pull f;
    const FileLimit full(100);
    CHECK(f.End().error.find("File too large") != std::string::npos);
  }
  Pull missing;
  std::filesystem::remove(missing.directory);
  CHECK(missing.End().error.find(ShardName(1, 2)) != std::string::npos);
  Pull f;
  f.part();
  CHECK_FALSE(f.part().ended());
  f.part().GiveUp();
  CHECK(PollUntil([&] { return f.part().Poll(); })->error == "the checkpoint was given up");
  CHECK(f.part().ended());
  f.asked.clear();
  f.part().Tick(Clock::now() + 2 * kAskForPieceAgain);
  CHECK(f.asked.empty());
  Pull gone;
  gone.part();  // its destructor does not wait
}

TEST_CASE("pulled part: a piece that comes again while it is written is not kept") {
  static std::atomic<int64_t> kept{0};
  Pull f;
  const auto release = [](void*, void*) { --kept; };
  std::vector<net::LentBytes> lent;  // until no copy is read any more
  const ShardSaver::Outcome outcome = *PollUntil([&] {
    f.part().Tick(Clock::now());
    for (const int64_t piece : std::exchange(f.asked, {})) {
      const std::optional<net::LentBytes> values = f.snapshot->Lend({0, piece});
      for (int copy = 0; copy < 20; ++copy) {
        ++kept;
        f.part().OnPiece(f.encoder.Piece({}, kNumber, 0, static_cast<uint64_t>(piece), 0,
                                         {values->data, values->size, release, nullptr}));
      }
      lent.push_back(*values);
    }
    return f.part().Poll();
  });
  for (const net::LentBytes& values : lent) {
    if (values.release != nullptr) values.release(const_cast<void*>(values.data), values.context);
  }
  CHECK(outcome.error == "");
  CHECK(kept == 0);
}

}  // namespace
}  // namespace dtrain
