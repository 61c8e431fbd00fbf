// data.split: feed: a worker and a false worker 0 that feeds it, and worker 0 and false workers that ask it.
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "fuzz/script.h"
#include "fuzz/target.h"
#include "trainer/feed/feed_server.h"
#include "trainer/feed/feed_source.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/testing/small_config.h"

namespace dtrain::fuzz {
namespace {

using wire::Body;

constexpr uint64_t kRun = 7, kToken = 5;
constexpr int64_t kInputs = 3;

// Some sparse rows as text.
std::string RowsFile() {
  static const MemoryFile rows([] {
    std::string text;
    for (int row = 0; row < 40; ++row) text += row % 2 == 0 ? "1 1:0.5 3:2\n" : "0 2:1 1:1\n";
    return text;
  }());
  return rows.path();
}

// `form`: 0: floats; 1: bytes; 2: sparse rows with weights for a table; 3: the same with offsets for
// a model without one.
Config FedConfig(int form) {
  const bool bytes = form == 1;
  Config config = bytes ? DigitsCluster(1, 3, 2) : LinearCluster(1, 3, 20);
  config.data.split = Split::kFeed;
  config.data.train.rows = 40;
  config.data.test.rows = 8;
  config.train.batch_size = 4;
  if (!bytes) config.model.inputs = kInputs;
  if (form < 2) return config;
  config.model.kind = ModelKind::kLogistic;
  if (form == 3) config.model.table = TableKind::kNone;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {RowsFile()};
  config.data.test = DataSourceConfig();
  config.data.class_weights = {"1=3"};
  if (form == 3) config.data.offset = kInitialOffset;
  return config;
}

ScriptChannel::Peer PeerOf(net::NodeId node, int worker, std::vector<Body> kinds) {
  ScriptChannel::Peer peer;
  peer.node = node;
  peer.as = {Role::kWorker, worker};
  peer.kinds = std::move(kinds);
  peer.answers = node == 0;
  return peer;
}

// Every value of a batch that was taken can be read.
void ReadAll(const Batch& batch) {
  Require(batch.rows > 0, "a batch has rows");
  volatile float sum = 0;
  const SparseRows& sparse = batch.sparse;
  for (int64_t i = 0; i < batch.rows; ++i) {
    if (batch.weights != nullptr) sum = sum + batch.weights[i];
    if (batch.row_offsets != nullptr) sum = sum + batch.row_offsets[i];
    for (int64_t j = sparse.offsets != nullptr ? sparse.offsets[i] : 0;
         sparse.offsets != nullptr && j < sparse.offsets[i + 1]; ++j) {
      Require(sparse.ids[j] < static_cast<uint64_t>(batch.columns), "a feature is one of the model's");
      if (sparse.values != nullptr) sum = sum + sparse.values[j];
    }
    for (int64_t j = 0; sparse.offsets == nullptr && j < batch.columns; ++j) {
      sum =
          sum + (batch.inputs != nullptr ? batch.inputs[i * batch.columns + j]
                                         : static_cast<float>(batch.bytes.table.row(batch.bytes.rows[i])[j]));
    }
    sum = sum + (batch.labels != nullptr ? static_cast<float>(batch.labels[i]) : batch.targets[i]);
  }
}

void BeFed(Input& input, const Config& config) {
  const size_t row = (static_cast<size_t>(*config.model.inputs) + 1) * sizeof(float);
  auto channel = std::make_unique<ScriptChannel>(input, config, row);
  ScriptChannel& script = *channel;
  script.peers.push_back(
      PeerOf(0, 0, {Body::DataBatch, Body::DataBatch, Body::Refuse, Body::Heartbeat, Body::Ack}));
  script.run = {kRun, 0};
  ScriptTransport transport(std::move(channel));
  Activity activity;
  FeedSource source(config, 1, transport, activity, [] {});
  source.Join(kRun, kToken);
  const int64_t max_rows = source.max_rows();  // which the worker's model is made for
  Require(max_rows > 0, "a worker knows how large its batches are");
  source.Start();
  Batch batch;
  while (source.Next(&batch)) {
    ++StepsReached();
    ReadAll(batch);
    Require(batch.rows <= max_rows, "no batch is larger than the largest");
    source.ReadAhead();
    if (input.Byte() > 250) source.Seek(static_cast<int64_t>(input.Number() % 1000));
  }
}

// The rows of each kind are made once: drawing digits takes longer than a run.
std::shared_ptr<const DataSet> RowsOf(const Config& config) {
  static std::map<std::pair<ModelKind, TableKind>, std::shared_ptr<const DataSet>> rows;
  std::shared_ptr<const DataSet>& of = rows[{config.model.kind, config.model.table}];
  if (of == nullptr) of = LoadData(config).train;
  return of;
}

void Feed(Input& input, const Config& config) {
  ScriptChannel channel(input, config, 0);
  for (int worker = 0; worker < 3; ++worker) {
    channel.peers.push_back(
        PeerOf(0x100 * static_cast<net::NodeId>(worker + 1), worker,
               {Body::NeedBatch, Body::NeedBatch, Body::NeedBatch, Body::Heartbeat, Body::Hello}));
  }
  channel.run = {kRun, 0};
  LogOptions quiet;
  quiet.standard_error = false;
  quiet.level = LogLevel::kError;
  Logger log("worker 0", quiet);
  channel.on_sent = [](const ScriptChannel::Peer&, const wire::Envelope& envelope) {
    if (envelope.body_as_DataBatch() != nullptr) ++StepsReached();
  };
  FeedServer server(config, RowsOf(config), channel, log);
  server.set_run(kRun, kToken);
  if (input.Flag()) server.Start();
  const int64_t before = HeapBytes();
  try {
    while (true) server.Serve(Clock::now() + milliseconds(1));
  } catch (const ScriptEnd&) {
  }
  Require(HeapBytes() - before < 4 << 20, "what worker 0 keeps of its peers is bounded");
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  const bool fed = input.Flag();
  const Config config = FedConfig(input.Byte() % 4);
  try {
    fed ? BeFed(input, config) : Feed(input, config);
  } catch (const ScriptEnd&) {
  } catch (const Failure&) {
  }
  return 0;
}

const AddTarget added("feed", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
