#include "trainer/worker/worker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "net/inproc_transport.h"
#include "trainer/sets/load_data.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"
#include "trainer/worker/evaluate.h"
#include "trainer/worker/worker_model.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr uint64_t kBytesOfMessage = 10;

// All ps of a run of two steps; they answer at once.
class Cluster : public FakeChannel {
 public:
  explicit Cluster(const Layout& layout) : layout_(layout) {}
  void Connect(net::NodeId id, const std::string&) override { nodes_.push_back(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    const wire::Envelope& envelope = *net::Decode(message);
    net::Message answer = Answer(PsOf(peer), envelope.body_type(), {17, 0, envelope.request()});
    if (!answer.header.empty()) incoming.push_back({peer, std::move(answer)});
    return FakeChannel::Send(peer, message);
  }
  net::ChannelStats stats() const override { return {kBytesOfMessage * sent.size(), 0, 0}; }

  size_t PsOf(net::NodeId node) const {
    return static_cast<size_t>(std::find(nodes_.begin(), nodes_.end(), node) - nodes_.begin());
  }
  // The index, among all messages, of the first of this kind to this ps.
  size_t Find(Body body, size_t ps) const {
    size_t at = 0;
    while (at < sent.size() && !(sent[at].envelope().body_type() == body && PsOf(sent[at].to) == ps)) ++at;
    REQUIRE(at < sent.size());
    return at;
  }

 private:
  net::Message Answer(size_t ps, Body body, const net::Envelope& envelope) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    switch (body) {
      case Body::Hello:
        return encoder_.Finish(envelope, wire::CreateWelcome(builder, 100, false));
      case Body::Ready:
        return encoder_.Finish(envelope, wire::CreateStart(builder, 2, /*initial=*/true));
      case Body::Push:
        version_ += ps == 0;
        return Weights(ps, envelope);
      case Body::Pull:
        return Weights(ps, envelope);
      case Body::NeedStep:
        return encoder_.Finish(envelope, wire::CreateGrant(builder, 0, /*over=*/true));
      case Body::Done:
        return encoder_.Finish(envelope, wire::CreateAck(builder));
      case Body::Evaluated:
        evaluated_ = true;
        return encoder_.Finish(envelope, wire::CreateGrant(builder));
      case Body::WaitEnd:
        if (!evaluated_) return encoder_.Finish(envelope, wire::CreateGrant(builder, 0, true, 0, true));
        return encoder_.Finish(envelope, wire::CreateEnd(builder, builder.CreateString(ToWireJson({}))));
      default:
        return {};
    }
  }
  net::Message Weights(size_t ps, const net::Envelope& envelope) {
    const std::vector<float> values(static_cast<size_t>(layout_.ps[ps].size()));
    return encoder_.Weights(envelope, {version_, version_},
                            {values.data(), values.size() * sizeof(float), nullptr, nullptr});
  }

  const Layout& layout_;
  std::vector<net::NodeId> nodes_;  // by ps
  net::Encoder encoder_;
  uint64_t version_ = 0;
  bool evaluated_ = false;
};

struct Run {
  Run() { worker.Run(); }

  const Config config = LinearCluster(2, 1, 2);
  const Layout layout = PlaceVariables(ModelVariables(config.model), 2, config.placement);
  const DeviceChoice devices;
  net::InprocTransport transport;
  Cluster cluster{layout};
  ExitHooks exit_hooks;
  Logger log{"worker 0", LogOptions{LogLevel::kError, false, "", false}};
  Worker worker{config,  {Role::kWorker, 0}, layout,  devices,    nullptr,
                cluster, transport,          nullptr, exit_hooks, log};
};

TEST_CASE("worker: every ps hears that it is done, ps 0 last, with what it has come to") {
  const Run run;
  const size_t last = run.cluster.Find(Body::Done, 0);
  CHECK(run.cluster.Find(Body::Done, 1) < last);
  const wire::Done& done = *run.cluster.sent[last].envelope().body_as_Done();
  CHECK(done.local_steps() == 2);
  CHECK_FALSE(done.loss().has_value());  // its last push has told it
  CHECK(done.first_step_nanos() > 0);
  CHECK(done.last_step_nanos() >= done.first_step_nanos());
  CHECK(std::isnan(done.accuracy()));
  CHECK(done.device()->str() == "cpu");
  CHECK(done.first_loss() > 0);
  CHECK(done.bytes_sent() == kBytesOfMessage * last);
  WorkerFigures figures;
  REQUIRE(FiguresFromJson(done.figures()->str(), &figures));
  CHECK(figures.steps == 2);
}

TEST_CASE("worker: what it sends behind Done is told apart") {
  const Run run;
  const size_t done = run.cluster.Find(Body::Done, 0);
  const size_t evaluated = run.cluster.Find(Body::Evaluated, 0);
  const wire::Evaluated& told = *run.cluster.sent[evaluated].envelope().body_as_Evaluated();
  CHECK(told.bytes_sent() == kBytesOfMessage * (evaluated - done));
}

TEST_CASE("worker: its figures add up its steps, and have a staleness only if it had any") {
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

TEST_CASE("evaluate: a run without the rows of a set has no evaluation on it") {
  const Config config;
  CHECK(EvaluationSource(EvalOn::kTest, config, LoadedData()) == nullptr);
  CHECK(EvaluationSource(EvalOn::kValidation, config, LoadedData()) == nullptr);
}

}  // namespace
}  // namespace dtrain
