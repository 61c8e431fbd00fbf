#include "trainer/worker/keyed_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"
#include "trainer/worker/exchanges.h"

namespace dtrain {
namespace {

// Batch `step` has one row with the feature `step`, up to the last one or the end of the lease.
class Counted : public BatchSource {
 public:
  explicit Counted(int64_t batches) : batches_(batches) {}
  bool Next(Batch* batch) override {
    if (next_ == batches_) return false;
    if (next_ == fault_at_) throw UserError("batch {} has a fault", next_);
    id_ = static_cast<uint64_t>(next_++) % 1000;
    *batch = Batch();
    batch->rows = 1;
    batch->sparse = {offsets_.data(), &id_, nullptr};
    return true;
  }
  void ReadAhead() override {}
  void Seek(int64_t local_step) override { next_ = local_step; }
  void Follow(const DataPlan&) override { next_ = 0; }
  void Take(const Lease& lease) override { batches_ = lease.step + lease.batches; }
  const DataPlan& plan() const override { return plan_; }
  int64_t epoch() const override { return (next_ - 1) / 10; }
  int64_t batch_in_epoch() const override { return (next_ - 1) % 10; }
  int64_t batches_per_epoch() const override { return 10; }
  int64_t read() const { return next_; }
  void set_fault_at(int64_t batch) { fault_at_ = batch; }

 private:
  int64_t batches_;
  const std::vector<int64_t> offsets_ = {0, 1};
  uint64_t id_ = 0;
  int64_t next_ = 0;
  int64_t fault_at_ = -1;
  DataPlan plan_;
};

struct Source {
  explicit Source(int64_t batches, int64_t ahead, bool on_thread = false) : counted(new Counted(batches)) {
    keyed = std::make_unique<KeyedSource>(std::unique_ptr<BatchSource>(counted), table, ahead, BatchForm(),
                                          on_thread);
  }
  // The feature of a batch.
  uint64_t FeatureOf(const KeyedBatch& batch) const {
    const uint64_t key = batch.keys()[batch.batch().sparse.places[0]];
    return table.FeatureOf(key);
  }
  const TableLayout table{1000, 1, 2};
  Counted* counted;  // owned by `keyed`
  std::unique_ptr<KeyedSource> keyed;
};

TEST_CASE("keyed source: batches come in order, and those ahead are the ones that come next") {
  bool on_thread = false;
  SUBCASE("read when they are asked for") {}
  SUBCASE("read on a thread") { on_thread = true; }
  Source at(30, 3, on_thread);
  CHECK(at.FeatureOf(*at.keyed->Ahead(1)) == 0);
  CHECK(at.FeatureOf(*at.keyed->Ahead(3)) == 2);
  Batch batch;
  for (int64_t step = 0; step < 30; ++step) {
    REQUIRE(at.keyed->Next(&batch));
    CHECK(at.FeatureOf(at.keyed->current()) == static_cast<uint64_t>(step));
    CHECK(at.keyed->epoch() == step / 10);
    CHECK(at.keyed->batch_in_epoch() == step % 10);
    for (int64_t ahead = 1; ahead <= 3; ++ahead) {
      const KeyedBatch* const next = at.keyed->Ahead(ahead);
      REQUIRE((next != nullptr) == (step + ahead < 30));
      if (next != nullptr) CHECK(at.FeatureOf(*next) == static_cast<uint64_t>(step + ahead));
    }
    at.keyed->ReadAhead();
    if (!on_thread) CHECK(at.counted->read() <= step + 5);
  }
  CHECK_FALSE(at.keyed->Next(&batch));
}

TEST_CASE("keyed source: a worker that returns goes on at its step, whatever was read ahead") {
  bool on_thread = false;
  SUBCASE("read when they are asked for") {}
  SUBCASE("read on a thread") { on_thread = true; }
  Source at(30, 2, on_thread);
  Batch batch;
  REQUIRE(at.keyed->Next(&batch));
  at.keyed->Ahead(2);
  at.keyed->Seek(20);
  CHECK(at.FeatureOf(*at.keyed->Ahead(1)) == 20);
  REQUIRE(at.keyed->Next(&batch));
  CHECK(at.FeatureOf(at.keyed->current()) == 20);
  at.keyed->Follow(DataPlan());
  CHECK(at.FeatureOf(*at.keyed->Ahead(1)) == 0);
}

TEST_CASE("keyed source: it ends with the last lease, and goes on when another one has come") {
  bool on_thread = false;
  SUBCASE("read when they are asked for") {}
  SUBCASE("read on a thread") { on_thread = true; }
  Source at(0, 2, on_thread);
  Batch batch;
  CHECK((at.keyed->Ahead(1) == nullptr));
  int64_t step = 0;
  for (int64_t lease = 0; lease < 300; ++lease) {
    CHECK_FALSE(at.keyed->Next(&batch));
    at.keyed->Take({step, 0, 0, lease % 7 + 1, {}});
    if (lease % 3 == 0) at.keyed->Ahead(1);
    if (lease % 5 == 0) at.keyed->Take({step + lease % 7 + 1, 0, 0, 2, {}});
    const int64_t end = step + lease % 7 + (lease % 5 == 0 ? 3 : 1);
    for (; step < end; ++step) {
      REQUIRE(at.keyed->Next(&batch));
      CHECK(at.FeatureOf(at.keyed->current()) == static_cast<uint64_t>(step) % 1000);
      at.keyed->ReadAhead();
    }
  }
  at.keyed->Take({step, 0, 0, 4, {}});
  at.keyed->Seek(step + 2);
  REQUIRE(at.keyed->Next(&batch));
  CHECK(at.FeatureOf(at.keyed->current()) == static_cast<uint64_t>(step + 2) % 1000);
}

TEST_CASE("keyed source: what is wrong with a batch is told at its turn, and again, and not behind Seek()") {
  bool on_thread = false;
  SUBCASE("read when they are asked for") {}
  SUBCASE("read on a thread") { on_thread = true; }
  Source at(30, 1, on_thread);
  at.counted->set_fault_at(5);
  Batch batch;
  for (int64_t step = 0; step < 5; ++step) REQUIRE(at.keyed->Next(&batch));
  CHECK(at.FeatureOf(at.keyed->current()) == 4);
  CHECK_THROWS_AS(at.keyed->Next(&batch), UserError);
  CHECK_THROWS_AS(at.keyed->Next(&batch), UserError);
  at.keyed->Seek(6);
  REQUIRE(at.keyed->Next(&batch));
  CHECK(at.FeatureOf(at.keyed->current()) == 6);
}

// Exchanges of a table with two ps; the test plays these.
struct Fixture {
  explicit Fixture(const CompressConfig& compress = {}) : source(30, 1) {
    config = LinearCluster(2, 1, 30);
    config.net.compress = compress;
    config.net.checksum = false;
    layout.ps.resize(2);
    layout.table = source.table;
    std::vector<Conversation*> pointers;
    for (size_t ps = 0; ps < 2; ++ps) {
      const size_t most = MaxOpenRequests(Exchanges::WindowOf(config.train, layout, ps));
      links.emplace_back(channel, config.cluster, TaskId{Role::kPs, static_cast<int>(ps)}, most);
      pointers.push_back(&links.back());
    }
    exchanges = std::make_unique<Exchanges>(config, layout, pointers);
  }
  // The latest message to a ps.
  const wire::Envelope& Last(size_t ps) const {
    for (auto sent = channel.sent.rbegin(); sent != channel.sent.rend(); ++sent) {
      if (sent->to == links[ps].node()) return sent->envelope();
    }
    throw std::runtime_error("nothing was sent");
  }
  void Answer(size_t ps, const std::vector<float>& rows, net::Compression form = net::Compression::kNone) {
    const auto count = static_cast<int64_t>(rows.size());
    std::vector<std::byte> bytes(net::CompressedBytes(form, count));
    if (form != net::Compression::kNone) {
      net::CompressAtRandom(form, rows.data(), 1, count, bytes.data());
    } else if (!rows.empty()) {
      std::memcpy(bytes.data(), rows.data(), bytes.size());
    }
    net::Encoder encoder;
    const net::Message message = encoder.Weights({1, 0, links[ps].oldest_open()}, {1, 1, 0, 0, 0, 0, form},
                                                 {bytes.data(), bytes.size(), nullptr, nullptr});
    exchanges->OnWeights(ps, message, *net::Decode(message));
  }

  Config config;
  Source source;
  Layout layout;
  FakeChannel channel;
  std::deque<Conversation> links;
  std::unique_ptr<Exchanges> exchanges;
};

TEST_CASE(
    "exchanges of a table: keys go to the ps that has their rows, and gradients name who asked for them") {
  Fixture at;
  KeyedBatch* const first = at.source.keyed->Ahead(1);
  at.exchanges->Pull(Exchanges::Entry(), {nullptr, first});
  std::vector<uint64_t> requests;
  for (size_t ps = 0; ps < 2; ++ps) {
    const wire::Pull& pull = *at.Last(ps).body_as_Pull();
    CHECK(pull.keys() == first->KeysIn(static_cast<int64_t>(ps)).size);
    requests.push_back(at.Last(ps).request());
    std::vector<float> rows(pull.keys());
    for (float& row : rows) row = static_cast<float>(ps + 1);
    at.Answer(ps, rows);
  }
  REQUIRE(at.exchanges->CloseOldest());
  for (int64_t key = 0; key < first->keys().size; ++key) {
    CHECK(first->parameters()[key] == (key < first->FirstIn(1) ? 1.0f : 2.0f));
  }
  Batch batch;
  REQUIRE(at.source.keyed->Next(&batch));
  at.exchanges->AddSteps(1);
  const net::LentBuffer gradient(static_cast<size_t>(first->keys().size) * sizeof(float));
  for (int64_t key = 0; key < first->keys().size; ++key)
    gradient.floats()[key] = static_cast<float>(10 + key);
  KeyedBatch* const second = at.source.keyed->Ahead(1);
  at.exchanges->Push(gradient, 1, {}, {&at.source.keyed->current(), second});
  for (size_t ps = 0; ps < 2; ++ps) {
    const wire::Push& push = *at.Last(ps).body_as_Push();
    CHECK(push.of() == requests[ps]);
    const auto block = static_cast<int64_t>(ps);
    CHECK(push.keys() == second->KeysIn(block).size);
    REQUIRE(push.values() != nullptr);
    const size_t values = static_cast<size_t>(first->KeysIn(block).size);
    CHECK(push.values()->size() == values * sizeof(float) + push.key_bytes());
    KeyList keys;
    const net::TensorView packed{
        reinterpret_cast<const std::byte*>(push.values()->data()) + values * sizeof(float), push.key_bytes()};
    CHECK(DecodeKeys(packed, push.keys(), at.layout.table->RangeOf(block), &keys) == "");
    CHECK(std::equal(keys.begin(), keys.end(), second->KeysIn(block).begin()));
    if (values == 0) continue;
    float value = 0;
    std::memcpy(&value, push.values()->data(), sizeof value);
    CHECK(value == static_cast<float>(10 + first->FirstIn(block)));
  }
}

TEST_CASE("exchanges of a table: rows travel in the forms of net.compress, and leave nothing behind") {
  Fixture at({net::Compression::kBf16, net::Compression::kInt8});
  KeyedBatch* const first = at.source.keyed->Ahead(1);
  at.exchanges->Pull(Exchanges::Entry(), {nullptr, first});
  for (size_t ps = 0; ps < 2; ++ps) {
    const auto keys = static_cast<size_t>(first->KeysIn(static_cast<int64_t>(ps)).size);
    at.Answer(ps, std::vector<float>(keys, 127), net::Compression::kInt8);
  }
  REQUIRE(at.exchanges->CloseOldest());
  for (int64_t key = 0; key < first->keys().size; ++key) CHECK(first->parameters()[key] == 127);
  Batch batch;
  REQUIRE(at.source.keyed->Next(&batch));
  at.exchanges->AddSteps(1);
  const net::LentBuffer gradient(static_cast<size_t>(first->keys().size) * sizeof(float));
  const float between = 1 + 1.0f / 256;  // halfway from 1 to the next value of bf16
  std::fill_n(gradient.floats(), first->keys().size, between);
  at.exchanges->Push(gradient, 1, {}, {&at.source.keyed->current(), nullptr});
  for (size_t ps = 0; ps < 2; ++ps) {
    const wire::Push& push = *at.Last(ps).body_as_Push();
    const int64_t keys = first->KeysIn(static_cast<int64_t>(ps)).size;
    CHECK(push.form() == static_cast<uint8_t>(net::Compression::kBf16));
    CHECK(push.key_bytes() == 0);
    if (keys == 0) continue;
    std::vector<float> values(static_cast<size_t>(keys));
    REQUIRE(net::Decompress(net::Compression::kBf16,
                            reinterpret_cast<const std::byte*>(push.values()->data()), push.values()->size(),
                            keys, values.data()));
    for (const float value : values) CHECK((value == 1 || value == 1 + 1.0f / 128));
  }
}

TEST_CASE("exchanges of a table: an answer with other rows than were asked for ends the task") {
  Fixture at;
  at.exchanges->Pull(Exchanges::Entry(), {nullptr, at.source.keyed->Ahead(1)});
  CHECK_THROWS_AS(at.Answer(0, std::vector<float>(9)), Failure);
}

}  // namespace
}  // namespace dtrain
