#include "trainer/worker/closing_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "net/inproc_transport.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using wire::Body;

// Two ps that answer at once: each has one part of the weights and 1000 bytes sent, 500 received.
class TwoPs : public FakeChannel {
 public:
  void Connect(net::NodeId id, const std::string&) override { nodes.push_back(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    const uint64_t request = net::Decode(message)->request();
    const Body asked = net::Decode(message)->body_type();
    incoming.push_back({peer, asked == Body::Checksums ? Parts(peer, request) : Ack(request)});
    return FakeChannel::Send(peer, message);
  }
  net::ChannelStats stats() const override { return counted; }
  // Of which ps, and what it was asked, in the order of time.
  std::vector<std::pair<int, Body>> Asked() const {
    std::vector<std::pair<int, Body>> asked;
    for (const Sent& one : sent) asked.emplace_back(one.to == nodes[0] ? 0 : 1, one.envelope().body_type());
    return asked;
  }

  std::vector<net::NodeId> nodes;
  net::ChannelStats counted;

 private:
  net::Message Ack(uint64_t request) {
    return encoder_.Finish({0, 0, request}, wire::CreateAck(encoder_.Begin()));
  }
  net::Message Parts(net::NodeId peer, uint64_t request) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const bool first = peer == nodes[0];
    const auto part =
        wire::CreatePart(builder, builder.CreateString(first ? "b" : "a"), 0, 4, first ? 11 : 12);
    return encoder_.Finish({0, 0, request},
                           wire::CreateChecksumList(builder, builder.CreateVector({part}), 1000, 500));
  }
  net::Encoder encoder_;
};

Config LinearModel(int64_t inputs) {
  Config config = LinearCluster(2, 1, 10);
  config.model.inputs = inputs;
  return config;
}

struct Chief {
  explicit Chief(int64_t inputs = 1) : config(LinearModel(inputs)) {}
  RunSummary Reported(const RunSummary& report) {
    const std::vector<float> parameters(static_cast<size_t>(layout.size), 0.5f);
    closing.Report(parameters.data(), report);
    RunSummary told;
    REQUIRE(FromWireJson(channel.sent.back().envelope().body_as_Report()->json()->str(), &told));
    return told;
  }

  const Config config;
  const Layout layout = PlaceVariables(ModelVariables(config.model), 2, config.placement);
  net::InprocTransport transport;
  TwoPs channel;
  Activity activity;
  Logger log{"worker 0", LogOptions{LogLevel::kError, false, "", false}};
  PsClient client{config, {Role::kWorker, 0}, layout, channel, transport, activity, log};
  WorkerData data{config, 0, transport, activity, [] {}, log};
  ClosingReport closing{layout, client, channel, data};
};

TEST_CASE("closing report: every ps hears that the worker is done, ps 0 last, with what it has come to") {
  Chief worker;
  worker.channel.counted = {70, 30, 0};
  ClosingReport::Own own;
  own.local_steps = 9;
  own.loss = 0.25;
  own.first_step_nanos = 100;
  own.last_step_nanos = 200;
  own.accuracy = 0.75;
  own.figures.steps = 9;
  worker.closing.SayDone(own);
  CHECK(worker.channel.Asked() == std::vector<std::pair<int, Body>>{{1, Body::Done}, {0, Body::Done}});
  const wire::Done& done = *worker.channel.sent.back().envelope().body_as_Done();
  CHECK(done.local_steps() == 9);
  CHECK(done.loss() == 0.25);
  CHECK(done.first_step_nanos() == 100);
  CHECK(done.last_step_nanos() == 200);
  CHECK(done.accuracy() == 0.75);
  CHECK(done.bytes_sent() == 70);
  CHECK(done.bytes_received() == 30);
  WorkerFigures figures;
  REQUIRE(FiguresFromJson(done.figures()->str(), &figures));
  CHECK(figures.steps == 9);
}

TEST_CASE("closing report: the chief adds what every ps counted, and of its own what Done did not tell") {
  Chief chief;
  chief.channel.counted = {70, 30, 0};
  chief.closing.SayDone({});
  chief.channel.counted = {77, 34, 0};
  RunSummary report;
  report.global_step = 10;
  report.bytes_sent = 100000;
  const RunSummary told = chief.Reported(report);
  CHECK(told.global_step == 10);
  CHECK(told.bytes_sent == 100000 + 2 * 1000 + 7);
  CHECK(told.bytes_received == 2 * 500 + 4);
  CHECK(told.model_crc == ModelChecksum({{"a", 0, 4, 12}, {"b", 0, 4, 11}}));
}

TEST_CASE("closing report: the weights are part of it for models of up to 64 values") {
  for (const int64_t inputs : {63, 64}) {
    Chief chief(inputs);
    chief.closing.SayDone({});
    const RunSummary told = chief.Reported({});
    CHECK(told.weights.size() == (inputs == 63 ? 2 : 0));
    if (inputs == 63) CHECK(told.weights.at("weights/W1") == std::vector<float>(63, 0.5f));
  }
}

TEST_CASE("closing report: a worker's figures add up its steps, and have a staleness only if it had any") {
  StepTimes times;
  const TimePoint begin = Clock::now();
  times.Begin(begin);
  times.Mark(StepPart::kData, begin + milliseconds(20));
  times.Mark(StepPart::kCompute, begin + milliseconds(120));
  times.EndStep();
  times.Mark(StepPart::kCompute, begin + milliseconds(220));
  times.EndStep();
  Staleness staleness(1);
  const WorkerFigures none = FiguresOf(times, staleness);
  CHECK(none.steps == 2);
  CHECK(none.data.total_s == doctest::Approx(0.02));
  CHECK(none.compute.total_s == doctest::Approx(0.2));
  CHECK(none.compute.p50_ms == doctest::Approx(100).epsilon(0.02));
  CHECK(none.hooks.total_s == 0);
  CHECK_FALSE(none.staleness.has_value());
  staleness.OnPulled(4);
  staleness.OnPushed();
  staleness.OnApplied(8);
  const WorkerFigures some = FiguresOf(times, staleness);
  REQUIRE(some.staleness.has_value());
  CHECK(some.staleness->mean == 3);
}

}  // namespace
}  // namespace dtrain
