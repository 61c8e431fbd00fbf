#include "trainer/worker/ps_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "trainer/peer/abort.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kStatusEvery{5000};
// How often a wait looks at heartbeats and repeats.
constexpr milliseconds kSlice{100};
// Hello is said often at first, because most tasks start together, then less so.
constexpr milliseconds kEagerHello{10};
constexpr milliseconds kPatientHello{100};
constexpr double kEagerSeconds = 1;

}  // namespace

PsClient::PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
                   net::Transport& transport, const Activity& activity, Logger& log)
    : config_(config),
      self_(self),
      layout_(layout),
      channel_(channel),
      log_(log),
      exchanged_(config.cluster.ps.size()),
      staleness_(config.train.in_flight),
      next_status_(Clock::now() + kStatusEvery) {
  std::vector<Heartbeat::Target> targets;
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    registrations_.push_back(std::make_unique<Registration>(config, self, static_cast<int>(ps), channel));
    targets.push_back({registrations_.back()->link().node(), registrations_.back()->address()});
  }
  heartbeat_ = std::make_unique<Heartbeat>(transport, targets, config.failure.detect_s, activity);
}

bool PsClient::AllWelcomed() const {
  return std::all_of(registrations_.begin(), registrations_.end(), [&](const auto& registration) {
    return registration->welcomed() && registration->run_id() == registrations_[0]->run_id();
  });
}

void PsClient::Join() {
  joined_ = false;
  const TimePoint begun = Clock::now();
  while (!AllWelcomed()) {
    const TimePoint now = Clock::now();
    std::string waiting;
    const bool too_late = SecondsBetween(begun, now) > config_.failure.startup_timeout_s;
    const bool status_due = now >= next_status_;
    for (const auto& registration : registrations_) {
      if (registration->welcomed()) continue;
      registration->SayHello();
      if (too_late || status_due) waiting += (waiting.empty() ? "" : ", ") + registration->Waiting();
    }
    if (too_late) {
      throw PeerLost(
          "{} s (failure.startup_timeout_s) have passed; waiting for {}. Start what is missing, or "
          "look at its log.",
          config_.failure.startup_timeout_s, waiting);
    }
    if (status_due) {
      next_status_ = now + kStatusEvery;
      log_.Info("waiting for {}", waiting);
    }
    const TimePoint pause = now + (SecondsBetween(begun, now) < kEagerSeconds ? kEagerHello : kPatientHello);
    while (!AllWelcomed() && ReceiveOne(pause)) {
    }
    ForgetOtherRuns();
  }
  run_id_ = registrations_[0]->run_id();
  joined_ = true;
  for (size_t ps = 0; ps < ps_count(); ++ps) heartbeat_->Watch(ps);
}

// All have answered, but for different runs: ps 0 was restarted meanwhile.
void PsClient::ForgetOtherRuns() {
  const auto welcomed = [](const auto& registration) { return registration->welcomed(); };
  if (!std::all_of(registrations_.begin(), registrations_.end(), welcomed) || AllWelcomed()) return;
  for (const auto& registration : registrations_) registration->Forget();
}

void PsClient::Rejoin() {
  for (const auto& registration : registrations_) {
    registration->link().Clear();
    registration->Forget();
  }
  steps_ = 0;
  Join();
}

size_t PsClient::IndexOf(net::NodeId node) const {
  size_t ps = 0;
  while (ps < registrations_.size() && registrations_[ps]->link().node() != node) ++ps;
  return ps;
}

bool PsClient::ReceiveOne(TimePoint deadline) {
  net::NodeId from = 0;
  if (channel_.Receive(deadline, &from, &message_) != net::ReceiveResult::kMessage) return false;
  const wire::Envelope* envelope = net::Decode(message_);
  const size_t ps = IndexOf(from);
  if (envelope == nullptr || ps == registrations_.size()) {
    log_.Warning("dropped a frame that is not a message of dtrain");
    return true;
  }
  Handle(ps, *envelope);
  return true;
}

void PsClient::Handle(size_t ps, const wire::Envelope& envelope) {
  Registration& registration = *registrations_[ps];
  switch (envelope.body_type()) {
    case Body::Weights:
      return OnWeights(ps, envelope);
    case Body::Welcome:
      return registration.OnWelcome(envelope.run_id());
    case Body::Refuse:
      registration.OnRefuse(*envelope.body_as_Refuse());
      if (running_ && !registration.welcomed()) {
        throw PeerLost(
            "{} does not know this task any more: it was restarted, or gave this task up. See its log.",
            registration.link().name());
      }
      if (joined_ && !registration.welcomed()) throw Restarted();
      return;
    case Body::Abort:
      SayBye();
      throw PeerLost("{}", AbortText(config_.cluster, *envelope.body_as_Abort()));
    case Body::Heartbeat:
      return;  // only asks whether this connection is open
    default:
      break;
  }
  if (!registration.link().Answered(envelope.request())) return;  // an answer given twice
  if (exchanged_[ps] < pushed_) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("{} answered a push with something else", registration.link().name()));
  }
  answer_ = &envelope;
  answer_from_ = ps;
}

void PsClient::OnWeights(size_t ps, const wire::Envelope& envelope) {
  PeerLink& link = registrations_[ps]->link();
  if (!link.Answered(envelope.request())) return;
  const wire::Weights& weights = *envelope.body_as_Weights();
  const net::TensorView values = net::Tensor(message_, weights);
  const Range range = layout_.ps[ps];
  if (parameters_ == nullptr || values.size != static_cast<size_t>(range.size()) * sizeof(float)) {
    throw Failure(ExitCode::kInternal, fmt::format("{} sent {} bytes for a range of {} values", link.name(),
                                                   values.size, range.size()));
  }
  if (weights.checksum() != 0 && weights.checksum() != net::PayloadChecksum(values.data, values.size)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("weights of {}, version {}, do not have the checksum made with that version "
                              "(net.checksum)",
                              link.name(), weights.version()));
  }
  if (values.size > 0) std::memcpy(parameters_ + range.begin, values.data, values.size);
  if (ps == 0) {
    steps_ += weights.steps();
    global_step_ = static_cast<int64_t>(weights.global_step());
  }
  if (exchanged_[ps] < pushed_) {
    ++exchanged_[ps];
    if (ps == 0) staleness_.OnApplied(weights.version());
  } else {  // the answer to a pull
    if (ps == 0) staleness_.OnPulled(weights.version());
    answer_ = &envelope;
    answer_from_ = ps;
  }
}

void PsClient::Pull(float* parameters) {
  DT_CHECK(open() == 0, open());
  parameters_ = parameters;
  for (size_t ps = 0; ps < ps_count(); ++ps) {
    Call(ps, false, "pull", [](auto& builder) { return wire::CreatePull(builder); });
  }
}

void PsClient::Push(const net::LentBuffer& buffer, float loss, uint32_t examples) {
  const bool checksum = config_.net.checksum;
  for (size_t ps = 0; ps < ps_count(); ++ps) {
    PeerLink& link = registrations_[ps]->link();
    const size_t offset = static_cast<size_t>(layout_.ps[ps].begin) * sizeof(float);
    const size_t size = static_cast<size_t>(layout_.ps[ps].size()) * sizeof(float);
    const net::LentBytes bytes = buffer.Lend(offset, size);
    const uint64_t sum = checksum ? net::PayloadChecksum(bytes.data, bytes.size) : 0;
    const uint64_t request = link.NextRequest();
    link.Send(request, encoder_.Push({run_id_, 0, request}, loss, examples, sum, bytes));
  }
  staleness_.OnPushed();
  ++pushed_;
  --steps_;
}

bool PsClient::EveryPsAnswered(uint64_t exchange) const {
  return std::all_of(exchanged_.begin(), exchanged_.end(), [&](uint64_t done) { return done >= exchange; });
}

void PsClient::Collect(float* parameters) {
  parameters_ = parameters;
  const uint64_t exchange = collected_ + 1;
  while (!EveryPsAnswered(exchange)) {
    if (!ReceiveOne(Clock::now() + kSlice)) OnQuiet(false, "push");
  }
  collected_ = exchange;
}

void PsClient::CollectArrived(float* parameters) {
  parameters_ = parameters;
  while (ReceiveOne(TimePoint())) {
  }
  while (open() > 0 && EveryPsAnswered(collected_ + 1)) ++collected_;
}

const wire::Envelope& PsClient::AwaitAnswer(size_t ps, bool patient, const char* what) {
  answer_ = nullptr;
  while (answer_ == nullptr || answer_from_ != ps) {
    if (!ReceiveOne(Clock::now() + kSlice)) OnQuiet(patient, what);
  }
  return *answer_;
}

void PsClient::OnQuiet(bool patient, const char* what) {
  const TimePoint now = Clock::now();
  for (size_t ps = 0; ps < ps_count(); ++ps) {
    PeerLink& link = registrations_[ps]->link();
    if (heartbeat_->Lost(ps)) {
      throw PeerLost("{} has not been heard for {:.1f} s (failure.detect_s = {}). Look at its log.",
                     link.name(), heartbeat_->SilentSeconds(ps), config_.failure.detect_s);
    }
    if (!patient && link.WaitedSeconds(now) * 1000 > static_cast<double>(config_.net.timeout_ms)) {
      throw PeerLost("{}: no reply to {} of step {} in {} ms (net.timeout_ms). Is it alive? See its log.",
                     link.name(), what, pushed_, config_.net.timeout_ms);
    }
    link.OnQuiet(now);
  }
  if (running_ || now < next_status_) return;
  next_status_ = now + kStatusEvery;
  const std::string status = heartbeat_->status();
  if (!status.empty()) log_.Info("waiting: {}", status);
}

void PsClient::Abort(int exit_code, const std::string& text) {
  net::Message message =
      encoder_.Finish({run_id_, 0, 0}, CreateAbort(encoder_.Begin(), exit_code, self_, text));
  channel_.Send(registrations_[0]->link().node(), message);
}

void PsClient::SayBye() {
  const uint64_t request = registrations_[0]->link().NextRequest();
  net::Message message = encoder_.Finish({run_id_, 0, request}, wire::CreateBye(encoder_.Begin()));
  channel_.Send(registrations_[0]->link().node(), message);
}

}  // namespace dtrain
