#include "trainer/worker/ps_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "trainer/peer/abort.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kStatusEvery{5000};
constexpr milliseconds kSlice{100};
// With more blocks open than a queue may hold: until an answer comes only time tells that there is room
// again.
constexpr milliseconds kQueueSlice{10};
// Hello is said often at first, because most tasks start together, then less so.
constexpr milliseconds kEagerHello{10};
constexpr milliseconds kPatientHello{100};
constexpr double kEagerSeconds = 1;

// A ps that knows the run, but not this task, says so; any other has been restarted.
std::string WhyForgotten(const wire::Refuse& refuse) {
  if (refuse.reason() == wire::Reason::Run) return "it was restarted";
  return ShortText(refuse.text()->str());
}

milliseconds SliceFor(const Config& config, const Layout& layout) {
  const bool long_queue = std::any_of(layout.ps.begin(), layout.ps.end(), [&](Range range) {
    return Exchanges::WindowOf(config.train, range) > kOpenBlocks;
  });
  return long_queue ? kQueueSlice : kSlice;
}

}  // namespace

PsClient::PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
                   net::Transport& transport, Activity& activity, Logger& log)
    : config_(config),
      self_(self),
      channel_(channel),
      activity_(activity),
      log_(log),
      slice_(SliceFor(config, layout)),
      registrations_(config, self, layout, channel),
      exchanges_(config, layout, registrations_.links()),
      stop_(config),
      next_status_(Clock::now() + kStatusEvery) {
  std::vector<Heartbeat::Target> targets;
  for (size_t ps = 0; ps < registrations_.size(); ++ps) {
    targets.push_back({registrations_.link(ps).node(), registrations_[ps].address()});
  }
  heartbeat_ = std::make_unique<Heartbeat>(transport, targets, config.failure.detect_s, activity);
}

void PsClient::Join() {
  joined_ = false;
  activity_.what = kJoining;  // it has a deadline of its own, and looks up names meanwhile
  const TimePoint begun = Clock::now();
  const bool returns = returns_since_ != TimePoint::max();
  const double most = returns ? config_.failure.wait_s : config_.failure.startup_timeout_s;
  while (!registrations_.welcomed()) {
    const TimePoint now = Clock::now();
    activity_.Turn();
    const bool too_late = SecondsBetween(std::min(begun, returns_since_), now) > most;
    const bool status_due = now >= next_status_;
    const std::string waiting = registrations_.SayHello(too_late || status_due);
    if (too_late) {
      throw PeerLost("{} s ({}) have passed; waiting for {}. Start what is missing, or look at its log.",
                     most, returns ? "failure.wait_s" : "failure.startup_timeout_s", waiting);
    }
    if (!registrations_[0].welcomed()) stop_.Check(activity_.stop_signal(), now);
    if (status_due) {
      next_status_ = now + kStatusEvery;
      log_.Info("waiting for {}", waiting);
    }
    const TimePoint pause = now + (SecondsBetween(begun, now) < kEagerSeconds ? kEagerHello : kPatientHello);
    while (!registrations_.welcomed() && ReceiveOne(pause)) {
    }
    registrations_.ForgetOtherRuns();
  }
  run_ = registrations_.run();
  exchanges_.set_run(run_);
  joined_ = true;
  for (size_t ps = 0; ps < ps_count(); ++ps) heartbeat_->Watch(ps, run_);
}

void PsClient::Rejoin() {
  if (running_) returns_since_ = std::min(returns_since_, Clock::now());
  running_ = false;
  registrations_.BeginAnew(returning());
  exchanges_.DropOpen();
  Join();
}

bool PsClient::ReceiveOne(TimePoint deadline) {
  net::NodeId from = 0;
  if (channel_.Receive(deadline, &from, &message_) != net::ReceiveResult::kMessage) return false;
  const wire::Envelope* envelope = net::Decode(message_);
  const size_t ps = registrations_.IndexOf(from);
  if (envelope == nullptr || ps == registrations_.size()) {
    log_.Warning("dropped a frame that is not a message of dtrain");
    return true;
  }
  Handle(ps, *envelope);
  return true;
}

void PsClient::Handle(size_t ps, const wire::Envelope& envelope) {
  Registration& registration = registrations_[ps];
  switch (envelope.body_type()) {
    case Body::Weights:
      return exchanges_.OnWeights(ps, message_, envelope);
    case Body::Welcome:
      return registration.OnWelcome(RunIdOf(envelope), envelope.body_as_Welcome()->saves());
    case Body::Refuse:
      return OnRefuse(ps, envelope);
    case Body::Abort:
      SayBye();
      ThrowAbort(config_.cluster, *envelope.body_as_Abort());
    case Body::Heartbeat:
      return;  // only asks whether this connection is open
    default:
      break;
  }
  if (!registration.link().Answered(envelope.request())) return;  // an answer given twice
  if (exchanges_.awaits(ps)) {
    throw Failure(ExitCode::kInternal, fmt::format("{} answered a push or a pull with something else",
                                                   registration.link().name()));
  }
  answer_ = &envelope;
  answer_from_ = ps;
}

void PsClient::OnRefuse(size_t ps, const wire::Envelope& envelope) {
  Registration& registration = registrations_[ps];
  const wire::Refuse& refuse = *envelope.body_as_Refuse();
  registration.OnRefuse(refuse);
  if (!joined_ || registration.welcomed()) return;
  const std::string why = fmt::format("{} does not know this task any more: {}", registration.link().name(),
                                      WhyForgotten(refuse));
  if (running_ && !(RunRecovers() && refuse.reason() == wire::Reason::Run)) throw PeerLost("{}.", why);
  throw Restarted{why};
}

void PsClient::Enter(float* parameters, const Exchanges::Entry& entry) {
  exchanges_.Pull(entry);
  Collect(parameters);
}

void PsClient::Pull(float* parameters) {
  exchanges_.Pull();
  Collect(parameters);
}

void PsClient::Collect(float* parameters) {
  exchanges_.set_parameters(parameters);
  while (!exchanges_.CloseOldest()) {
    // Other modes' answers wait for other workers, for as long as those are alive.
    if (!ReceiveOne(Clock::now() + slice_)) {
      OnQuiet(config_.train.mode != TrainMode::kAsync, "an exchange");
    }
  }
}

void PsClient::CollectArrived(float* parameters) {
  exchanges_.set_parameters(parameters);
  while (ReceiveOne(TimePoint())) {
  }
  while (exchanges_.CloseOldest()) {
  }
}

void PsClient::Attend() {
  while (ReceiveOne(TimePoint())) {
  }
  OnQuiet(true, "");
}

void PsClient::CheckAllAlive() {
  activity_.Turn();
  for (size_t ps = 0; ps < ps_count(); ++ps) CheckAlive(ps);
}

const wire::Envelope& PsClient::AwaitAnswer(size_t ps, bool patient, const char* what) {
  answer_ = nullptr;
  while (answer_ == nullptr || answer_from_ != ps) {
    if (!ReceiveOne(Clock::now() + slice_)) OnQuiet(patient, what);
  }
  return *answer_;
}

void PsClient::OnQuiet(bool patient, const char* what) {
  const TimePoint now = Clock::now();
  activity_.Turn();
  for (size_t ps = 0; ps < ps_count(); ++ps) {
    PeerLink& link = registrations_.link(ps);
    CheckAlive(ps);
    if (!patient && link.WaitedSeconds(now) * 1000 > static_cast<double>(config_.net.timeout_ms)) {
      throw PeerLost(
          "{}: no reply to {} at local step {} in {} ms (net.timeout_ms). Is it alive? See its log.",
          link.name(), what, activity_.local_step.load(std::memory_order_relaxed), config_.net.timeout_ms);
    }
    link.OnQuiet(now);
  }
  if (running_ || now < next_status_) return;
  next_status_ = now + kStatusEvery;
  const std::string status = heartbeat_->status();
  if (!status.empty()) log_.Info("waiting: {}", status);
}

void PsClient::CheckAlive(size_t ps) {
  if (ps == 0) ThrowIfAborted();
  if (heartbeat_->Lost(ps)) OnLost(heartbeat_->SilentLongest());
  const std::string& name = registrations_.link(ps).name();
  const bool recovers = RunRecovers();
  if (joined_ && heartbeat_->Left(ps, run_)) {
    if (running_ && !recovers) throw PeerLost("{} does not know this task any more: it was restarted.", name);
    throw Restarted{name + " is of another run, or has gone back to a checkpoint"};
  }
}

void PsClient::OnLost(size_t ps) {
  const std::string why =
      fmt::format("{} has not been heard for {:.1f} s (failure.detect_s = {})",
                  registrations_.link(ps).name(), heartbeat_->SilentSeconds(ps), config_.failure.detect_s);
  if (!RunRecovers()) throw PeerLost("{}. Look at its log.", why);
  if (ps == 0 && on_lost_) on_lost_({Role::kPs, 0});
  throw Restarted{why};
}

void PsClient::ThrowIfAborted() {
  const net::Message message = heartbeat_->TakeAbort();
  if (message.header.empty()) return;
  SayBye();
  ThrowAbort(config_.cluster, *net::Decode(message)->body_as_Abort());
}

void PsClient::Abort(int exit_code, const std::string& text, const RunSummary* summary) {
  net::Message message =
      encoder_.Finish(run_.Envelope(0), CreateAbort(encoder_.Begin(), exit_code, self_, text, summary));
  channel_.Send(registrations_.link(0).node(), message);
}

void PsClient::SayBye() {
  const uint64_t request = registrations_.link(0).NextRequest();
  net::Message message = encoder_.Finish(run_.Envelope(request), wire::CreateBye(encoder_.Begin()));
  channel_.Send(registrations_.link(0).node(), message);
}

}  // namespace dtrain
