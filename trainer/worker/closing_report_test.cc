#include "trainer/worker/closing_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "net/inproc_transport.h"
#include "trainer/model/model.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using wire::Body;

// Two ps that answer at once.
class TwoPs : public FakeChannel {
 public:
  void Connect(net::NodeId id, const std::string&) override { nodes.push_back(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    const uint64_t request = net::Decode(message)->request();
    incoming.push_back({peer, Ack(request)});
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
  net::Encoder encoder_;
};

struct Closing {
  const Config config = LinearCluster(2, 1, 10);
  const Layout layout = PlaceVariables(ModelVariables(config.model), 2, config.placement);
  net::InprocTransport transport;
  TwoPs channel;
  Activity activity;
  Logger log{"worker 0", LogOptions{LogLevel::kError, false, "", false}};
  PsClient client{config, {Role::kWorker, 0}, layout, channel, transport, activity, log};
  WorkerData data{config, 0, transport, activity, [] {}, log};
  ClosingReport closing{client, channel, data};
};

TEST_CASE("closing report: every ps hears that the worker is done, ps 0 last, with what it has come to") {
  Closing worker;
  worker.channel.counted = {70, 30, 0};
  ClosingReport::Own own;
  own.local_steps = 9;
  own.loss = 0.25;
  own.first_step_nanos = 100;
  own.last_step_nanos = 200;
  own.accuracy = 0.75;
  own.figures.steps = 9;
  own.device = "cpu";
  own.first_loss = 0.5;
  worker.closing.SayDone(own);
  CHECK(worker.channel.Asked() == std::vector<std::pair<int, Body>>{{1, Body::Done}, {0, Body::Done}});
  const wire::Done& done = *worker.channel.sent.back().envelope().body_as_Done();
  CHECK(done.local_steps() == 9);
  CHECK(done.loss() == 0.25);
  CHECK(done.first_step_nanos() == 100);
  CHECK(done.last_step_nanos() == 200);
  CHECK(done.accuracy() == 0.75);
  CHECK(done.device()->str() == "cpu");
  CHECK(done.first_loss() == 0.5);
  CHECK(done.bytes_sent() == 70);
  CHECK(done.bytes_received() == 30);
  WorkerFigures figures;
  REQUIRE(FiguresFromJson(done.figures()->str(), &figures));
  CHECK(figures.steps == 9);
}

TEST_CASE("closing report: what the worker sends and receives behind Done is told apart") {
  Closing worker;
  worker.channel.counted = {70, 30, 0};
  worker.closing.SayDone({});
  worker.channel.counted = {77, 34, 0};
  CHECK(worker.closing.SinceDone().bytes_sent == 7);
  CHECK(worker.closing.SinceDone().bytes_received == 4);
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
