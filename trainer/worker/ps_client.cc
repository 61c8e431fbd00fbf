#include "trainer/worker/ps_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "trainer/device/device_store.h"
#include "trainer/model/blocks.h"
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

}  // namespace

PsClient::PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
                   net::Transport& transport, Activity& activity, Logger& log)
    : config_(config),
      self_(self),
      layout_(layout),
      channel_(channel),
      activity_(activity),
      log_(log),
      slice_(kSlice),
      exchanges_(static_cast<size_t>(config.train.in_flight)),
      staleness_(config.train.in_flight),
      stop_(config),
      next_status_(Clock::now() + kStatusEvery) {
  const uint64_t incarnation = net::NewNodeId();
  std::vector<Heartbeat::Target> targets;
  int64_t blocks = 0;
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    Flow flow;
    flow.range = layout.ps[ps];
    flow.blocks = BlockCount(flow.range);
    flow.first_block = std::exchange(blocks, blocks + flow.blocks);
    flow.window = MostOpenBlocks(config.train, flow.blocks);
    if (flow.window > kOpenBlocks) slice_ = kQueueSlice;
    flow.registration =
        std::make_unique<Registration>(config, self, static_cast<int>(ps), incarnation, channel, flow.window);
    targets.push_back({flow.registration->link().node(), flow.registration->address()});
    flows_.push_back(std::move(flow));
  }
  heartbeat_ = std::make_unique<Heartbeat>(transport, targets, config.failure.detect_s, activity);
}

bool PsClient::AllWelcomed() const {
  return std::all_of(flows_.begin(), flows_.end(), [&](const Flow& flow) {
    return flow.registration->welcomed() && flow.registration->run() == flows_[0].registration->run();
  });
}

void PsClient::Join() {
  joined_ = false;
  activity_.what = kJoining;  // it has a deadline of its own, and looks up names meanwhile
  const TimePoint begun = Clock::now();
  const bool returns = returns_since_ != TimePoint::max();
  const double most = returns ? config_.failure.wait_s : config_.failure.startup_timeout_s;
  while (!AllWelcomed()) {
    const TimePoint now = Clock::now();
    activity_.Turn();
    std::string waiting;
    const bool too_late = SecondsBetween(std::min(begun, returns_since_), now) > most;
    const bool status_due = now >= next_status_;
    for (const Flow& flow : flows_) {
      if (flow.registration->welcomed()) continue;
      flow.registration->SayHello();
      if (too_late || status_due) waiting += (waiting.empty() ? "" : ", ") + flow.registration->Waiting();
    }
    if (too_late) {
      throw PeerLost("{} s ({}) have passed; waiting for {}. Start what is missing, or look at its log.",
                     most, returns ? "failure.wait_s" : "failure.startup_timeout_s", waiting);
    }
    if (!flows_[0].registration->welcomed()) stop_.Check(activity_.stop_signal(), now);
    if (status_due) {
      next_status_ = now + kStatusEvery;
      log_.Info("waiting for {}", waiting);
    }
    const TimePoint pause = now + (SecondsBetween(begun, now) < kEagerSeconds ? kEagerHello : kPatientHello);
    while (!AllWelcomed() && ReceiveOne(pause)) {
    }
    ForgetOtherRuns();
  }
  run_ = flows_[0].registration->run();
  joined_ = true;
  for (size_t ps = 0; ps < ps_count(); ++ps) heartbeat_->Watch(ps, run_);
}

// All have answered, but for different runs: ps 0 was restarted meanwhile.
void PsClient::ForgetOtherRuns() {
  const auto welcomed = [](const Flow& flow) { return flow.registration->welcomed(); };
  if (!std::all_of(flows_.begin(), flows_.end(), welcomed) || AllWelcomed()) return;
  for (const Flow& flow : flows_) flow.registration->Forget();
}

void PsClient::Rejoin() {
  if (running_) returns_since_ = std::min(returns_since_, Clock::now());
  running_ = false;
  const uint64_t incarnation = net::NewNodeId();
  for (Flow& flow : flows_) {
    flow.registration->link().Clear();
    flow.registration->BeginAnew(incarnation);
    if (returning()) flow.registration->set_was_in_run();
    flow.sent = flow.answered = begun_ * flow.blocks;
  }
  DropSent();
  collected_ = begun_;
  steps_ = 0;
  staleness_.DropOpen();
  Join();
}

size_t PsClient::IndexOf(net::NodeId node) const {
  size_t ps = 0;
  while (ps < flows_.size() && flows_[ps].registration->link().node() != node) ++ps;
  return ps;
}

bool PsClient::ReceiveOne(TimePoint deadline) {
  net::NodeId from = 0;
  if (channel_.Receive(deadline, &from, &message_) != net::ReceiveResult::kMessage) return false;
  const wire::Envelope* envelope = net::Decode(message_);
  const size_t ps = IndexOf(from);
  if (envelope == nullptr || ps == flows_.size()) {
    log_.Warning("dropped a frame that is not a message of dtrain");
    return true;
  }
  Handle(ps, *envelope);
  return true;
}

void PsClient::Handle(size_t ps, const wire::Envelope& envelope) {
  Registration& registration = *flows_[ps].registration;
  switch (envelope.body_type()) {
    case Body::Weights:
      return OnWeights(ps, envelope);
    case Body::Welcome:
      return registration.OnWelcome(RunIdOf(envelope));
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
  if (flows_[ps].answered < flows_[ps].sent) {
    throw Failure(ExitCode::kInternal, fmt::format("{} answered a push or a pull with something else",
                                                   registration.link().name()));
  }
  answer_ = &envelope;
  answer_from_ = ps;
}

void PsClient::OnRefuse(size_t ps, const wire::Envelope& envelope) {
  Registration& registration = *flows_[ps].registration;
  const wire::Refuse& refuse = *envelope.body_as_Refuse();
  registration.OnRefuse(refuse);
  if (!joined_ || registration.welcomed()) return;
  const std::string why = fmt::format("{} does not know this task any more: {}", registration.link().name(),
                                      WhyForgotten(refuse));
  if (running_ && !(RecoversPs(config_) && refuse.reason() == wire::Reason::Run)) throw PeerLost("{}.", why);
  throw Restarted{why};
}

void PsClient::OnWeights(size_t ps, const wire::Envelope& envelope) {
  Flow& flow = flows_[ps];
  PeerLink& link = LinkOf(ps);
  if (!link.Answered(envelope.request())) return;
  const wire::Weights& weights = *envelope.body_as_Weights();
  if (flow.answered == flow.sent) {
    throw Failure(ExitCode::kInternal, fmt::format("{} sent weights that were not asked for", link.name()));
  }
  TakeIn(link, BlockOf(flow.range, flow.answered % flow.blocks), weights);
  held_us_ = std::max<int64_t>(held_us_, weights.held_us());
  if (ps == 0) {
    steps_ += weights.steps();
    global_step_ = static_cast<int64_t>(weights.global_step());
  }
  ++flow.answered;
  const int64_t exchange = (flow.answered - 1) / flow.blocks;
  if (config_.train.mode == TrainMode::kSync) {
    versions_.OnAnswer(exchange, weights.version());
    if (EveryPsAnswered(exchange + 1)) versions_.OnWhole(ExchangeOf(exchange).gradient != nullptr);
  } else if (ps == 0 && flow.answered % flow.blocks == 0) {
    CountStaleness(exchange, weights);
  }
  SendBlocks(ps);
}

// The payload of message_.
void PsClient::TakeIn(const PeerLink& link, Range block, const wire::Weights& weights) {
  const net::TensorView values = net::Tensor(message_, weights);
  const auto bytes = static_cast<size_t>(block.size()) * sizeof(float);
  if (values.size != (by_address_ ? sizeof(DeviceAddress) : bytes)) {
    throw Failure(ExitCode::kInternal, fmt::format("{} sent {} bytes for a block of {} values", link.name(),
                                                   values.size, block.size()));
  }
  if (weights.checksum() != 0 && weights.checksum() != net::PayloadChecksum(values.data, values.size)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("weights of {}, version {}, do not have the checksum made with that version "
                              "(net.checksum)",
                              link.name(), weights.version()));
  }
  if (by_address_ || bytes == 0) return;
  std::memcpy(parameters_ + block.begin, values.data, bytes);
  if (on_weights_) on_weights_(parameters_, block);
}

void PsClient::CountStaleness(int64_t exchange, const wire::Weights& weights) {
  if (ExchangeOf(exchange).gradient == nullptr) return staleness_.OnPulled(weights.version());
  staleness_.OnApplied(weights.version());
}

void PsClient::Restore(size_t ps, uint32_t slot, uint64_t first, const net::LentBuffer& values) {
  const uint64_t sum = config_.net.checksum ? net::PayloadChecksum(values.floats(), values.bytes()) : 0;
  const uint64_t request = LinkOf(ps).NextRequest();
  LinkOf(ps).Send(
      request, encoder_.Restore(run_.Envelope(request), {slot, first, sum}, values.Lend(0, values.bytes())));
  AwaitAnswer(ps, false, "a restored piece");
}

void PsClient::Enter(float* parameters, const Entry& entry) {
  Exchange pull;
  pull.entry = entry;
  PullAll(parameters, std::move(pull));
}

void PsClient::Pull(float* parameters) { PullAll(parameters, Exchange()); }

void PsClient::PullAll(float* parameters, Exchange pull) {
  DT_CHECK(open() == 0, open());
  parameters_ = parameters;
  Begin(std::move(pull));
  Collect(parameters);
}

void PsClient::Push(const net::LentBuffer& buffer, uint32_t examples) {
  Exchange push;
  push.gradient = &buffer;
  push.hold = buffer.KeepLent();
  push.examples = examples;
  Begin(std::move(push));
  staleness_.OnPushed();
  --steps_;
}

void PsClient::Begin(Exchange exchange) {
  DT_CHECK(open() < static_cast<int64_t>(exchanges_.size()), open());
  ExchangeOf(begun_) = std::move(exchange);
  ++begun_;
  for (size_t ps = 0; ps < ps_count(); ++ps) SendBlocks(ps);
}

// As many blocks of the open exchanges as the window has room for, in order.
void PsClient::SendBlocks(size_t ps) {
  Flow& flow = flows_[ps];
  while (flow.sent < begun_ * flow.blocks && flow.sent - flow.answered < flow.window) {
    SendBlock(ps, ExchangeOf(flow.sent / flow.blocks), flow.sent % flow.blocks);
    ++flow.sent;
  }
  DropSent();
}

void PsClient::SendBlock(size_t ps, const Exchange& exchange, int64_t index) {
  PeerLink& link = LinkOf(ps);
  const uint64_t request = link.NextRequest();
  const auto number = static_cast<uint32_t>(index);
  if (exchange.gradient == nullptr) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const Entry entry = exchange.entry.value_or(Entry());
    const auto together = entry.together.empty() ? 0 : builder.CreateVector(entry.together);
    const auto pull = wire::CreatePull(builder, number, exchange.entry.has_value(), together, entry.clock,
                                       entry.resume, entry.version);
    return link.Send(request, encoder_.Finish(run_.Envelope(request), pull));
  }
  const Bytes part = PartOf(flows_[ps], index);
  const net::LentBytes bytes = exchange.gradient->Lend(part.offset, part.size);
  const uint64_t sum = config_.net.checksum ? net::PayloadChecksum(bytes.data, bytes.size) : 0;
  link.Send(request, encoder_.Push(run_.Envelope(request), number, exchange.examples, sum, bytes,
                                   versions_.version()));
}

PsClient::Bytes PsClient::PartOf(const Flow& flow, int64_t index) const {
  if (by_address_) {
    return {static_cast<size_t>(flow.first_block + index) * sizeof(DeviceAddress), sizeof(DeviceAddress)};
  }
  const Range block = BlockOf(flow.range, index);
  return {static_cast<size_t>(block.begin) * sizeof(float),
          static_cast<size_t>(block.size()) * sizeof(float)};
}

// Gives back gradients of which every block is on its way: each of those is lent on its own.
void PsClient::DropSent() {
  const auto sent = [&](const Flow& flow) { return flow.sent >= (sent_ + 1) * flow.blocks; };
  for (; sent_ < begun_ && std::all_of(flows_.begin(), flows_.end(), sent); ++sent_) {
    ExchangeOf(sent_).hold.reset();
  }
}

bool PsClient::EveryPsAnswered(int64_t exchanges) const {
  return std::all_of(flows_.begin(), flows_.end(),
                     [&](const Flow& flow) { return flow.answered >= exchanges * flow.blocks; });
}

void PsClient::Collect(float* parameters) {
  parameters_ = parameters;
  while (!EveryPsAnswered(collected_ + 1)) {
    // Other modes' answers wait for other workers, for as long as those are alive.
    if (!ReceiveOne(Clock::now() + slice_)) OnQuiet(!async(), "an exchange");
  }
  ++collected_;
}

void PsClient::CollectArrived(float* parameters) {
  parameters_ = parameters;
  while (ReceiveOne(TimePoint())) {
  }
  while (open() > 0 && EveryPsAnswered(collected_ + 1)) ++collected_;
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
    PeerLink& link = LinkOf(ps);
    CheckAlive(ps);
    if (!patient && link.WaitedSeconds(now) * 1000 > static_cast<double>(config_.net.timeout_ms)) {
      throw PeerLost(
          "{}: no reply to {} at local step {} in {} ms (net.timeout_ms). Is it alive? See its log.",
          link.name(), what, activity_.local_step.load(std::memory_order_relaxed), config_.net.timeout_ms);
    }
    link.OnQuiet(now);
  }
  if (on_quiet_) on_quiet_();
  if (running_ || now < next_status_) return;
  next_status_ = now + kStatusEvery;
  const std::string status = heartbeat_->status();
  if (!status.empty()) log_.Info("waiting: {}", status);
}

void PsClient::CheckAlive(size_t ps) {
  if (ps == 0) ThrowIfAborted();
  const std::string& name = LinkOf(ps).name();
  const bool recovers = RecoversPs(config_);
  if (heartbeat_->Lost(ps)) {
    const std::string why = fmt::format("{} has not been heard for {:.1f} s (failure.detect_s = {})", name,
                                        heartbeat_->SilentSeconds(ps), config_.failure.detect_s);
    if (!recovers) throw PeerLost("{}. Look at its log.", why);
    if (ps == 0 && on_lost_) on_lost_({Role::kPs, 0});
    throw Restarted{why};
  }
  if (joined_ && heartbeat_->Left(ps, run_)) {
    if (running_ && !recovers) throw PeerLost("{} does not know this task any more: it was restarted.", name);
    throw Restarted{name + " is of another run, or has gone back to a checkpoint"};
  }
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
  channel_.Send(LinkOf(0).node(), message);
}

void PsClient::SayBye() {
  const uint64_t request = LinkOf(0).NextRequest();
  net::Message message = encoder_.Finish(run_.Envelope(request), wire::CreateBye(encoder_.Begin()));
  channel_.Send(LinkOf(0).node(), message);
}

}  // namespace dtrain
