#include "trainer/feed/feed_batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "base/random.h"
#include "trainer/feed/feed_test_util.h"

namespace dtrain {
namespace {

// An answer of worker 0.
net::Message Answer(const Config& config) {
  ServerUnderTest test(config);
  test.Ask(1, 0);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 1);
  net::Message answer = std::move(test.channel.sent[0].message);
  answer.payload = net::Frame::Copy(answer.payload.data(), answer.payload.size());
  answer.header = net::Frame::Copy(answer.header.data(), answer.header.size());
  return answer;
}

// Whether the batch is read; then all its values can be, and every label is within the model's outputs.
bool IsRead(const Config& config, const net::Message& message) {
  const wire::Envelope* envelope = net::Decode(message);
  const wire::DataBatch* batch = envelope == nullptr ? nullptr : envelope->body_as_DataBatch();
  if (batch == nullptr) return false;
  const net::TensorView values = net::Tensor(message, *batch);
  if (batch->end() || !WhyNotFedBatch(config, *batch, values).empty()) return false;
  FedReader reader(config);
  const Batch read = reader.Read(*batch, values);
  const size_t size = Contents(read).size();
  if (read.sparse.offsets == nullptr) {
    CHECK(size == static_cast<size_t>(read.rows * (read.columns + 3) + 2));
  }
  for (int64_t i = 0; read.sparse.offsets != nullptr && i < read.sparse.offsets[read.rows]; ++i) {
    CHECK(read.sparse.ids[i] < static_cast<uint64_t>(*config.model.inputs));
  }
  for (int64_t i = 0; read.labels != nullptr && i < read.rows; ++i) {
    CHECK(read.labels[i] >= 0);
    CHECK(read.labels[i] < std::max<int64_t>(2, *config.model.outputs));
  }
  return true;
}

Config WithoutChecksum(Config config) {
  config.net.checksum = false;  // lets more damage through to the other checks
  return config;
}

TEST_CASE("fed batch: more are read ahead where they are small, and never fewer than two") {
  CHECK(BatchesAhead(8) == kMaxBatchesAhead);
  CHECK(BatchesAhead(100 * 788) == kMaxBatchesAhead);
  CHECK(BatchesAhead(1 << 20) == 4);
  CHECK(BatchesAhead(int64_t{1} << 30) == 2);
  CHECK(BatchesAhead(0) == kMaxBatchesAhead);
}

TEST_CASE("fed batch: bytes of images travel as bytes") {
  CHECK(FedBatchBytes(FedForm(FedDigits(), 100, true), 784) == 100 * 788);
  CHECK(FedBatchBytes(FedForm(FedDigits(), 100, false), 784) == 100 * (4 + 4 * 784));
  const net::Message answer = Answer(WithoutChecksum(FedDigits()));
  CHECK(answer.payload.size() == 50 * 788);
}

TEST_CASE("fed batch: a payload of any other length is refused") {
  const Config config = WithoutChecksum(FedDigits());
  const net::Message answer = Answer(config);
  CHECK(IsRead(config, answer));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{788}, answer.payload.size() - 1}) {
    CHECK_FALSE(IsRead(config, {answer.header.Share(), net::Frame::Copy(answer.payload.data(), size)}));
  }
  const std::string longer = std::string(answer.payload.text()) + "x";
  CHECK_FALSE(IsRead(config, {answer.header.Share(), net::Frame::Copy(longer.data(), longer.size())}));
}

TEST_CASE("fed batch: one without rows is read in rounds that end epochs in step, and refused elsewhere") {
  Config config = FedDigits();
  config.train.mode = TrainMode::kSync;
  config.train.epochs = 1;
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  config.data.train.rows = (workers + 1) * 50;  // the second step has rows for worker 0 alone
  ServerUnderTest test(config);
  test.Ask(1, 1);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 1);
  const net::Message& answer = test.channel.sent[0].message;
  CHECK(net::Decode(answer)->body_as_DataBatch()->rows() == 0);
  CHECK(IsRead(config, answer));
  config.train.mode = TrainMode::kAsync;
  CHECK_FALSE(IsRead(config, answer));
}

TEST_CASE("fed batch: a label that the model has no output for is refused") {
  const Config config = WithoutChecksum(FedDigits());
  const net::Message answer = Answer(config);
  for (const int32_t label : {-1, 10, INT32_MAX, INT32_MIN}) {
    std::string payload(answer.payload.text());
    std::memcpy(&payload[4 * 49], &label, sizeof label);
    CHECK_FALSE(IsRead(config, {answer.header.Share(), net::Frame::Copy(payload.data(), payload.size())}));
  }
}

TEST_CASE("fed batch: with net.checksum one changed byte is refused") {
  const Config config = FedDigits();
  const net::Message answer = Answer(config);
  CHECK(IsRead(config, answer));
  std::string payload(answer.payload.text());
  payload[1000] ^= 1;
  CHECK_FALSE(IsRead(config, {answer.header.Share(), net::Frame::Copy(payload.data(), payload.size())}));
}

// The answer with its header's fields and its payload changed.
net::Message Changed(const net::Message& answer, const std::function<void(net::BatchHead&)>& change,
                     const std::function<void(std::string&)>& damage = nullptr) {
  const wire::DataBatch& batch = *net::Decode(answer)->body_as_DataBatch();
  net::BatchHead head{batch.local_step(),
                      batch.end(),
                      batch.rows(),
                      batch.as_bytes(),
                      batch.epoch(),
                      0,
                      0,
                      batch.max_rows(),
                      0,
                      batch.devices(),
                      batch.weighted(),
                      batch.weight(),
                      batch.id_bytes(),
                      batch.features(),
                      batch.has_values(),
                      batch.has_offsets()};
  if (change) change(head);
  const net::TensorView values = net::Tensor(answer, batch);
  std::string bytes(reinterpret_cast<const char*>(values.data), values.size);
  if (damage) damage(bytes);
  net::Encoder encoder;
  net::Message message =
      encoder.DataBatch({kRun, 0, 1}, head, {bytes.data(), bytes.size(), nullptr, nullptr});
  if (!message.payload.empty()) message.payload = net::Frame::Copy(bytes.data(), bytes.size());
  return message;
}

TEST_CASE("fed batch: the number of a sparse feature takes the bytes that the largest one needs") {
  const net::Message answer = Answer(WithoutChecksum(FedSparse()));
  const wire::DataBatch& batch = *net::Decode(answer)->body_as_DataBatch();
  CHECK(batch.weighted());
  CHECK(batch.has_values());
  CHECK(batch.id_bytes() == 2);
  CHECK(batch.has_offsets());
  CHECK(net::Tensor(answer, batch).size == 4 * (4 + 4 + 4 + 4) + batch.features() * (4 + 2));
}

TEST_CASE("fed batch: sparse rows whose lists contradict each other or the model are refused") {
  const Config config = WithoutChecksum(FedSparse());
  const net::Message answer = Answer(config);
  const auto features = static_cast<uint32_t>(net::Decode(answer)->body_as_DataBatch()->features());
  REQUIRE(features >= 2);
  CHECK(IsRead(config, Changed(answer, nullptr)));
  // Each list has four items of four bytes: labels, weights, offsets, ends of rows.
  const auto with = [&](size_t item, uint32_t value) {
    return IsRead(config, Changed(answer, nullptr, [&](std::string& bytes) {
                    std::memcpy(&bytes[4 * item], &value, sizeof value);
                  }));
  };
  const auto number = [&](size_t item, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return with(item, bits);
  };
  const auto weight = [&](float value) { return number(5, value); };
  CHECK_FALSE(with(0, 2));  // the model has the classes 0 and 1
  CHECK(weight(0));
  CHECK(weight(7.5f));
  CHECK_FALSE(weight(-1));
  CHECK_FALSE(weight(std::numeric_limits<float>::infinity()));
  CHECK_FALSE(weight(std::numeric_limits<float>::quiet_NaN()));
  CHECK(number(9, -7.5f));
  CHECK_FALSE(number(9, std::numeric_limits<float>::infinity()));
  CHECK_FALSE(with(12, features + 1));
  CHECK_FALSE(with(12, UINT32_MAX));
  CHECK_FALSE(with(14, 0));             // ends before row 1 does, or leaves the last row too many
  CHECK_FALSE(with(15, features - 1));  // a feature is of no row
  const auto header = [&](const std::function<void(net::BatchHead&)>& change) {
    return IsRead(config, Changed(answer, change));
  };
  CHECK_FALSE(header([](auto& head) { head.id_bytes = 0; }));
  CHECK_FALSE(header([](auto& head) { head.id_bytes = 9; }));
  CHECK_FALSE(header([](auto& head) { head.id_bytes = 3; }));
  CHECK_FALSE(header([](auto& head) { head.has_values = false; }));
  CHECK_FALSE(header([](auto& head) { head.weighted = false; }));
  CHECK_FALSE(header([](auto& head) { head.has_offsets = false; }));
  CHECK_FALSE(header([](auto& head) { head.weight = -1; }));
  CHECK_FALSE(header([](auto& head) { head.weight = std::numeric_limits<double>::infinity(); }));
  CHECK_FALSE(header([](auto& head) { head.features = UINT64_MAX; }));
  CHECK_FALSE(header([](auto& head) { head.features += 1; }));
  CHECK_FALSE(header([](auto& head) { head.as_bytes = true; }));
  Config narrow = config;
  narrow.model.inputs = 1;
  CHECK_FALSE(IsRead(narrow, answer));
}

TEST_CASE("fed batch: rows that are not sparse, or have no weights, are not taken for others") {
  Config config = WithoutChecksum(FedDigits());
  const net::Message answer = Answer(config);
  CHECK_FALSE(IsRead(config, Changed(answer, [](auto& head) { head.id_bytes = 1; })));
  CHECK_FALSE(IsRead(config, Changed(answer, [](auto& head) { head.features = 1; })));
  const auto more = [](std::string& bytes) { bytes.insert(4 * 50, 4 * 50, 0); };
  const net::Message weighted = Changed(
      answer, [](auto& head) { head.weighted = true; }, more);
  CHECK_FALSE(IsRead(config, weighted));
  config.data.class_weights = {"1=2"};
  CHECK(IsRead(config, weighted));
}

TEST_CASE("fed batch: a header cut short or changed is refused, or read within its bytes") {
  for (const Config& config :
       {WithoutChecksum(FedDigits()), WithoutChecksum(FedFloats()), WithoutChecksum(FedSparse())}) {
    const net::Message answer = Answer(config);
    const std::string header(answer.header.text());
    for (size_t size = 0; size < header.size(); ++size) {
      IsRead(config, {net::Frame::Copy(header.data(), size), answer.payload.Share()});
    }
    int read = 0;
    const CounterRandom random(20'260'207);
    for (uint64_t i = 0; i < 20'000; ++i) {
      const CounterRandom stream = random.Stream(i);
      std::string damaged = header;
      const uint64_t changes = 1 + stream.Below(0, 4);
      for (uint64_t change = 0; change < changes; ++change) {
        damaged[stream.Below(10 + 2 * change, damaged.size())] =
            static_cast<char>(stream.Bits(11 + 2 * change));
      }
      read += IsRead(config, {net::Frame::Copy(damaged.data(), damaged.size()), answer.payload.Share()});
    }
    CHECK(read > 0);  // some changes only alter numbers
    CHECK(read < 20'000);
  }
}

}  // namespace
}  // namespace dtrain
