#include "trainer/feed/feed_batch.h"

#include <doctest/doctest.h>

#include <numeric>
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
  std::vector<int64_t> numbers(batch->max_rows());
  std::iota(numbers.begin(), numbers.end(), 0);
  const Batch read = ReadFedBatch(config, *batch, values, numbers);
  CHECK(Contents(read).size() == static_cast<size_t>(read.rows * (read.columns + 1) + 2));
  for (int64_t i = 0; read.labels != nullptr && i < read.rows; ++i) {
    CHECK(read.labels[i] >= 0);
    CHECK(read.labels[i] < *config.model.outputs);
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
  CHECK(FedBatchBytes(100, 784, true) == 100 * 788);
  CHECK(FedBatchBytes(100, 784, false) == 100 * (4 + 4 * 784));
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

TEST_CASE("fed batch: a header cut short or changed is refused, or read within its bytes") {
  for (const Config& config : {WithoutChecksum(FedDigits()), WithoutChecksum(FedFloats())}) {
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
