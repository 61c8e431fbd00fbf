#include "trainer/feed/feed_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "trainer/feed/feed_test_util.h"
#include "trainer/sets/load_data.h"
#include "trainer/testing/flood_channel.h"

namespace dtrain {
namespace {

// Gives out one channel that the test looks into, and others that lead nowhere.
class FakeTransport : public net::Transport {
 public:
  std::unique_ptr<net::Channel> NewChannel() override {
    auto channel = std::make_unique<FakeChannel>();
    if (first == nullptr) first = channel.get();
    return channel;
  }
  FakeChannel* first = nullptr;
};

// A worker's source and worker 0's server; the test carries the messages.
struct Feed {
  explicit Feed(const Config& config, int worker = 1)
      : server(config),
        source(server.config, worker, transport, activity, [this] { CarryAll(); }),
        channel(*transport.first) {}

  void CarryAll() {
    ++carried;
    if (turns_before_start-- == 0) {
      server.server.UseRows(rows_at_start);
      server.server.Start();
    }
    if (Clock::now() > give_up) throw PeerLost("the test gives up");
    for (FakeChannel::Sent& sent : channel.sent) {
      node = sent.to;
      if (++asked > lose && carry) server.Hand(sent.to, std::move(sent.message));
    }
    channel.sent.clear();
    server.ServeAll();
    for (FakeChannel::Sent& sent : server.channel.sent) channel.incoming.push_back(std::move(sent));
    server.channel.sent.clear();
  }

  ServerUnderTest server;
  FakeTransport transport;
  Activity activity;
  FeedSource source;
  FakeChannel& channel;
  net::NodeId node = 0;
  bool carry = true;
  int carried = 0;
  int asked = 0;
  int lose = 0;  // this many requests, the first ones
  int turns_before_start = -1;
  std::shared_ptr<const DataSet> rows_at_start;
  const TimePoint give_up = Clock::now() + milliseconds(60000);
};

TEST_CASE("feed source: gives the batches of split: shard, to the end of the epochs") {
  Config dense_model = FedSparse();
  dense_model.model.table = TableKind::kNone;
  Config weighted = FedDigits();
  weighted.data.class_weights = {"balanced"};
  Config streamed = FedSparse();
  streamed.data.cache = DataCache::kNone;
  streamed.data.shuffle_rows = 8;
  for (const Config& config : {FedDigits(), FedFloats(), FedSparse(), dense_model, weighted, streamed}) {
    Feed feed(config, 2);
    const auto shard = MakeBatchSource(config, feed.server.train, 2, 3);
    feed.source.Join(kRun, kToken);
    CHECK(feed.source.max_rows() == std::min<int64_t>(config.train.batch_size, 50));
    Batch fed, read;
    int steps = 0;
    while (steps < 100 && shard->Next(&read)) {
      ++steps;
      REQUIRE(feed.source.Next(&fed));
      CHECK(Contents(fed) == Contents(read));
      CHECK(feed.source.epoch() == shard->epoch());
      CHECK(feed.source.batch_in_epoch() == shard->batch_in_epoch());
      CHECK(feed.source.batches_per_epoch() == shard->batches_per_epoch());
      if (steps % 3 == 0) feed.source.ReadAhead();
      CHECK(Contents(fed) == Contents(read));
    }
    if (steps == 100) continue;
    CHECK_FALSE(feed.source.Next(&fed));
    CHECK_FALSE(feed.source.Next(&fed));
  }
}

TEST_CASE("feed source: asks for the first batch alone, then for a bounded number ahead") {
  Feed feed(FedDigits());
  CHECK(feed.channel.sent.empty());
  feed.source.Join(kRun, kToken);
  CHECK(feed.asked == 1);
  CHECK(feed.channel.sent.size() == kMaxBatchesAhead - 1);
  feed.CarryAll();
  feed.source.ReadAhead();
  CHECK(feed.channel.sent.empty());
  Batch batch;
  CHECK(feed.source.Next(&batch));
  CHECK(feed.channel.sent.size() == 1);
}

TEST_CASE("feed source: goes on at any step, whatever was asked for before") {
  const Config config = FedDigits();
  Feed feed(config);
  const auto shard = MakeBatchSource(config, feed.server.train, 1, 3);
  feed.source.Join(kRun, kToken);
  for (const int64_t step : {9, 2, 13}) {
    feed.source.Seek(step);
    shard->Seek(step);
    Batch fed, read;
    REQUIRE(feed.source.Next(&fed));
    REQUIRE(shard->Next(&read));
    CHECK(Contents(fed) == Contents(read));
  }
}

TEST_CASE(
    "feed source: what is left of the data is fed as split: shard deals it, whatever was asked for before") {
  const Config config = FedDigits(3);
  Feed feed(config, 2);
  const auto shard = MakeBatchSource(config, feed.server.train, 2, 3);
  feed.source.Join(kRun, kToken);  // batches of all data are on their way with it
  const DataPlan plan = *Replan({}, {1, {9, 4}}, 21);
  feed.server.server.Follow(plan);
  feed.server.server.Start();
  feed.source.Follow(plan);
  feed.source.Start();
  shard->Follow(plan);
  Batch fed, read;
  int64_t batches = 0;
  while (shard->Next(&read)) {
    ++batches;
    REQUIRE(feed.source.Next(&fed));
    CHECK(Contents(fed) == Contents(read));
    CHECK(feed.source.epoch() == shard->epoch());
    CHECK(feed.source.batch_in_epoch() == shard->batch_in_epoch());
    CHECK(feed.source.batches_per_epoch() == shard->batches_per_epoch());
  }
  CHECK(batches == 2 + 7 + 7);  // 8 batches are left of the first epoch
  CHECK_FALSE(feed.source.Next(&fed));
  CHECK(feed.source.plan() == plan);
}

TEST_CASE(
    "feed source: once started it takes nothing of a worker 0 that has not, as one that was restarted") {
  Config config = FedDigits();
  Feed feed(config);
  feed.source.Join(kRun, kToken);
  feed.source.Start();
  config.data.seed = 20;  // the rows of the restarted server before its Start
  const auto right = feed.server.train;
  feed.server.server.UseRows(LoadData(config).train);
  Batch fed, read;
  feed.turns_before_start = 5;
  feed.rows_at_start = right;
  REQUIRE(feed.source.Next(&fed));
  const auto shard = MakeBatchSource(feed.server.config, right, 1, 3);
  REQUIRE(shard->Next(&read));
  CHECK(Contents(fed) == Contents(read));
  CHECK(feed.carried > 5);
}

TEST_CASE("feed source: joins another run before the start") {
  Feed feed(FedDigits());
  feed.source.Join(kRun, kToken);
  feed.server.server.set_run(kRun + 1, kToken);
  feed.source.Join(kRun + 1, kToken);
  Batch batch;
  CHECK(feed.source.Next(&batch));
}

TEST_CASE("feed source: a request that gets lost is sent again") {
  Feed feed(FedDigits());
  feed.lose = 1;
  feed.source.Join(kRun, kToken);
  CHECK(feed.asked >= 2);
  Batch batch;
  CHECK(feed.source.Next(&batch));
}

TEST_CASE("feed source: on a new connection all that was open is asked for again at once") {
  Feed feed(FedDigits());
  feed.source.Join(kRun, kToken);
  feed.channel.sent.clear();  // 7 requests
  feed.channel.connections = 2;
  feed.carried = 0;
  Batch batch;
  for (int step = 0; step < 8; ++step) CHECK(feed.source.Next(&batch));
  CHECK(feed.carried < 10);  // a wait for the repeat would look many thousand times
}

TEST_CASE(
    "feed source: all that was open getting lost costs one pause, and later ones are not asked for twice") {
  Feed feed(FedDigits());
  feed.source.Join(kRun, kToken);
  feed.channel.sent.clear();  // 7 requests
  Batch batch;
  for (int step = 0; step < 14; ++step) CHECK(feed.source.Next(&batch));
  CHECK_FALSE(feed.source.Next(&batch));
  CHECK(feed.asked <= 1 + 14 + kMaxBatchesAhead);
}

TEST_CASE("feed source: answers may come in any order, and twice") {
  const Config config = FedDigits();
  Feed feed(config);
  const auto shard = MakeBatchSource(config, feed.server.train, 1, 3);
  feed.source.Join(kRun, kToken);
  feed.CarryAll();
  std::reverse(feed.channel.incoming.begin(), feed.channel.incoming.end());
  const auto& first = feed.channel.incoming.front();
  feed.channel.incoming.push_back({first.to, {first.message.header.Share(), first.message.payload.Share()}});
  Batch fed, read;
  for (int step = 0; step < 14; ++step) {
    REQUIRE(feed.source.Next(&fed));
    REQUIRE(shard->Next(&read));
    CHECK(Contents(fed) == Contents(read));
  }
}

TEST_CASE("feed source: frames of strangers, other runs and other steps change nothing") {
  Feed feed(FedDigits());
  feed.source.Join(kRun, kToken);
  feed.CarryAll();
  net::Encoder encoder;
  const auto hand = [&](net::NodeId from, uint64_t run_id, uint64_t step) {
    const net::BatchHead end{step, true, 0, false, 0, 0, 0, 0, 0};
    feed.channel.incoming.push_front({from, encoder.DataBatch({run_id, 0, step + 1}, end, {})});
  };
  hand(feed.node + 2, kRun, 1);
  hand(feed.node, kRun + 1, 1);
  hand(feed.node, kRun, 0);
  hand(feed.node, kRun, 99);
  hand(feed.node, kRun, UINT64_MAX);
  feed.channel.incoming.push_front(
      {feed.node, encoder.Finish({kRun, 0, 2}, wire::CreateAck(encoder.Begin()))});
  feed.channel.incoming.push_front({feed.node, {net::Frame::Copy("nonsense", 8), net::Frame()}});
  Batch batch;
  for (int step = 0; step < 10; ++step) CHECK(feed.source.Next(&batch));
}

TEST_CASE("feed source: a wrong batch from worker 0 is a failure that names it and the step") {
  const std::vector<float> values(50 * 785);
  const auto hand = [&](Feed& feed, net::BatchHead head) {
    net::Encoder encoder;
    feed.channel.incoming.push_back(
        {feed.node, encoder.DataBatch({kRun, 0, 2}, head, {values.data(), 50 * 788, nullptr, nullptr})});
  };
  const net::BatchHead good{1, false, 50, true, 0, 1, 7, 50, 0};
  for (int wrong = 0; wrong < 4; ++wrong) {
    Feed feed(FedDigits());
    feed.source.Join(kRun, kToken);
    feed.CarryAll();
    feed.channel.incoming.clear();
    net::BatchHead head = good;
    if (wrong == 1) head.rows = 49;
    if (wrong == 2) head.as_bytes = false;
    if (wrong == 3) head.max_rows = 49;
    hand(feed, head);
    Batch batch;
    CHECK(feed.source.Next(&batch));  // the one that Join() got
    if (wrong == 0) {
      CHECK(feed.source.Next(&batch));
      continue;
    }
    CHECK_THROWS_WITH_AS(feed.source.Next(&batch),
                         doctest::Contains("local step 1 from worker 0 (127.0.0.1:11001) is refused"),
                         Failure);
  }
}

TEST_CASE("feed source: a batch of more rows than worker 0 named first is refused, as is one of none") {
  const std::vector<float> values(50 * 785);
  net::Encoder encoder;
  const net::BatchHead small{0, false, 30, true, 0, 0, 7, 30, 0}, larger{1, false, 50, true, 0, 1, 7, 50, 0},
      none{1, true, 0, true, 0, 1, 7, 0, 0};
  for (const net::BatchHead& wrong : {larger, none}) {
    Config config = FedDigits();
    config.failure.startup_timeout_s = 0.05;
    Feed feed(config);
    feed.carry = false;
    CHECK_THROWS_AS(feed.source.Join(kRun, kToken), PeerLost);  // asks, and nothing comes
    for (const net::BatchHead& head : {small, wrong}) {
      const net::LentBytes lent{values.data(), size_t{head.rows} * 788, nullptr, nullptr};
      feed.channel.incoming.push_back(
          {feed.node, encoder.DataBatch({kRun, 0, head.local_step + 2}, head, lent)});
    }
    feed.source.Join(kRun, kToken);
    CHECK(feed.source.max_rows() == 30);
    Batch batch;
    CHECK(feed.source.Next(&batch));
    CHECK_THROWS_WITH_AS(feed.source.Next(&batch), doctest::Contains("is refused: it names"), Failure);
    CHECK(feed.source.max_rows() == 30);
  }
}

TEST_CASE("feed source: what does not come is named with worker 0, the step and the key of the deadline") {
  const auto said = [](bool carries, uint64_t run, bool began) {
    Config config = FedDigits();
    if (!began) config.failure.startup_timeout_s = 0.05;
    config.net.timeout_ms = 50;
    Feed feed(config);
    feed.carry = carries;
    std::string text;
    try {
      feed.source.Join(run, kToken);
      feed.carry = false;
      Batch batch;
      CHECK(feed.source.Next(&batch));
      feed.source.Next(&batch);
    } catch (const PeerLost& lost) {
      text = lost.what();
    }
    return text;
  };
  const struct {
    const char* what;
    std::string said, text;
  } cases[] = {
      {"no answer", said(false, kRun, false),
       "worker 0 (127.0.0.1:11001): no batch for worker 1 in 0.05 s (failure.startup_timeout_s)"},
      {"of another run", said(true, kRun + 1, false), "It says: worker 0 is in another run"},
      {"in the run", said(true, kRun, true),
       "worker 0 (127.0.0.1:11001): no batch of local step 1 in 50 ms (net.timeout_ms)"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.what);
    CHECK(each.said.find(each.text) != std::string::npos);
  }
}

TEST_CASE("feed source: batches that may be too large for this worker's connection are named as a reason") {
  Config config = FedFloats();
  config.failure.startup_timeout_s = 0.05;
  Feed feed(config);
  Config narrow = config;
  narrow.train.batch_size = 1000000;
  narrow.net.max_message_mb = 2;
  FeedSource source(narrow, 1, feed.transport, feed.activity, [] {});
  CHECK_THROWS_WITH_AS(source.Join(kRun, kToken), doctest::Contains("larger than net.max_message_mb = 2"),
                       PeerLost);
}

TEST_CASE("feed source: a worker 0 that sends other things without end keeps no wait from its deadline") {
  Config config = FedDigits();
  config.failure.startup_timeout_s = 0.05;
  FloodTransport transport;
  Activity activity;
  FeedSource source(config, 1, transport, activity, [] {});
  FloodChannel& channel = *transport.channels[0];
  net::Encoder encoder;
  CHECK_THROWS_AS(source.Join(kRun, kToken), PeerLost);  // asks, and nothing comes
  REQUIRE_FALSE(channel.sent.empty());
  channel.flood = {channel.sent[0].to, encoder.Finish({kRun, 0, 0}, wire::CreateNeedStep(encoder.Begin()))};
  source.ReadAhead();
  CHECK_THROWS_AS(source.Join(kRun, kToken), PeerLost);
}

}  // namespace
}  // namespace dtrain
