// A FeedServer on a channel that the test looks into.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/testing/files.h"
#include "trainer/feed/feed_server.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

constexpr uint64_t kRun = 77;
constexpr uint64_t kToken = 0x5ec5e7;

// Three workers; 21 batches of 50 digits in an epoch, the last one short.
inline Config FedDigits(int64_t epochs = 2) {
  Config config = DigitsCluster(1, 3, epochs);
  config.data.split = Split::kFeed;
  config.data.train.rows = 1030;
  config.data.validation = 10;
  return config;
}

// Three workers; float rows.
inline Config FedFloats() {
  Config config = LinearCluster(1, 3, 100);
  config.data.split = Split::kFeed;
  config.model.inputs = 3;
  config.train.batch_size = 4;
  return config;
}

// Three workers; 30 sparse rows of 0 to 4 features, where a feature may come twice, with weights of rows and
// of classes, and with offsets.
inline Config FedSparse() {
  Config config = LinearCluster(1, 3, 0);
  config.model.kind = ModelKind::kLogistic;
  config.model.inputs = 1 << 10;
  config.data.split = Split::kFeed;
  config.data.train.format = DataFormat::kVw;
  config.data.hash_bits = 10;
  config.data.class_weights = {"1=3"};
  config.data.offset = kInitialOffset;
  config.train.steps.reset();
  config.train.epochs = 2;
  config.train.batch_size = 4;
  std::string text;
  for (int row = 0; row < 30; ++row) {
    text += (row % 3 == 0 ? "1 " : "0 ") + std::to_string(1 + row % 2) + ".5 -" + std::to_string(row) + " |";
    for (int i = 0; i < row % 5; ++i) {
      text += " f" + std::to_string(row * row % (7 + i)) + ":" + std::to_string(i + 1) + ".25";
    }
    text += "\n";
  }
  config.data.train.path = {testing::NewDirectory() + "/rows.vw"};
  std::ofstream(config.data.train.path[0]) << text;
  return config;
}

struct ServerUnderTest {
  explicit ServerUnderTest(const Config& of)
      : config(of), train(LoadData(config).train), server(config, train, channel, log) {
    server.set_run(kRun, kToken);
  }

  void Hand(net::NodeId from, net::Message message) {
    channel.incoming.push_back({from, std::move(message)});
  }
  void Ask(uint32_t worker, uint64_t local_step, uint64_t run_id = kRun, bool started = false,
           uint64_t token = kToken, uint32_t key = 0) {
    net::Message message = encoder.Finish(
        {run_id, 0, ++requests}, wire::CreateNeedBatch(encoder.Begin(), worker, local_step, started, token));
    message.key = key;
    Hand(NodeOf(worker), std::move(message));
  }
  // Answers all that has arrived: takes more turns than requests can wait.
  void ServeAll() {
    while (!channel.incoming.empty()) server.Serve(TimePoint());
    for (int i = 0; i < 100; ++i) server.Serve(TimePoint());
  }
  // Asks again while nothing comes: a server reads so much of strangers at a time and drops what is more, and
  // a test that is not run for some milliseconds has used that up.
  void AskUntilAnswered(uint32_t worker, uint64_t local_step, uint64_t run_id, uint64_t token, uint32_t key) {
    channel.sent.clear();
    for (const TimePoint until = Clock::now() + std::chrono::seconds(60); channel.sent.empty();) {
      REQUIRE(Clock::now() < until);
      Ask(worker, local_step, run_id, false, token, key);
      ServeAll();
    }
  }
  static net::NodeId NodeOf(uint32_t worker) { return (net::NodeId{9} << 56) + 2 * worker; }

  const Config config;
  const std::shared_ptr<const DataSet> train;
  FakeChannel channel;
  Logger log{"worker 0", Quiet()};
  FeedServer server;
  net::Encoder encoder;
  uint64_t requests = 0;

 private:
  static LogOptions Quiet() {
    LogOptions options;
    options.standard_error = false;
    return options;
  }
};

// All values of a batch that a model reads, in one list: of each row its label, its weight, its offset and
// its features.
inline std::vector<float> Contents(const Batch& batch) {
  std::vector<float> contents = {static_cast<float>(batch.rows), static_cast<float>(batch.columns)};
  for (int64_t i = 0; i < batch.rows; ++i) {
    contents.push_back(batch.labels != nullptr ? static_cast<float>(batch.labels[i]) : batch.targets[i]);
    contents.push_back(batch.weights != nullptr ? batch.weights[i] : 1);
    contents.push_back(batch.row_offsets != nullptr ? batch.row_offsets[i] : 0);
    if (const SparseRows& sparse = batch.sparse; sparse.offsets != nullptr) {
      for (int64_t j = sparse.offsets[i]; j < sparse.offsets[i + 1]; ++j) {
        contents.push_back(static_cast<float>(sparse.ids[j]));
        contents.push_back(sparse.values != nullptr ? sparse.values[j] : 1);
      }
      continue;
    }
    for (int64_t j = 0; j < batch.columns; ++j) {
      contents.push_back(batch.inputs != nullptr
                             ? batch.inputs[i * batch.columns + j]
                             : static_cast<float>(batch.bytes.table.row(batch.bytes.rows[i])[j]));
    }
  }
  return contents;
}

}  // namespace dtrain
