#include "trainer/peer/conversations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/names.h"
#include "base/signals.h"
#include "net/tcp.h"
#include "trainer/config/config.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

using wire::Body;
using wire::Reason;

// Says Hello often at first, because most tasks start together, then less often.
constexpr milliseconds kEagerHello{10};
constexpr milliseconds kPatientHello{100};
constexpr milliseconds kEagerFor{1000};
// A refusal comes with each Hello, so an older one is out of date.
constexpr milliseconds kFreshRefusal{2000};
// How long ps 0 has to let in a task that is to stop, so that the run ends everywhere.
constexpr milliseconds kStopAloneAfter{2000};
// How often a task that is to stop looks whether the process of a silent ps 0 is gone.
constexpr milliseconds kProbeEvery{1000};
constexpr milliseconds kProbeTimeout{500};

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::Setting>>> EncodeSettings(
    const Settings& settings, flatbuffers::FlatBufferBuilder& builder) {
  std::vector<flatbuffers::Offset<wire::Setting>> list;
  for (const auto& [key, value] : settings) {
    list.push_back(wire::CreateSetting(builder, builder.CreateString(key), builder.CreateString(value)));
  }
  return builder.CreateVector(list);
}

// How many workers like this one the processors here suffice for.
uint32_t WorkersAtOnce(const DeviceConfig& device) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(Processors() / (device.threads * device.towers()), 1, 1000000));
}

}  // namespace

std::string GivesUpText(const Config& config, TimePoint since, double limit_s) {
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s));
  return fmt::format("gives up at {} with exit {}", TimeOfDay(since + limit), config.failure.peer_lost_exit);
}

std::string GivesUpInText(TimePoint since, double limit_s, TimePoint now) {
  return fmt::format("; gives up in {:.0f} s", std::max(limit_s - SecondsBetween(since, now), 0.0));
}

std::string LostStepsText(const Config& config, int64_t steps, std::optional<int64_t> saved) {
  if (saved && steps <= *saved) return "Start the run again.";
  if (saved) {
    return fmt::format(
        "{} lost behind the newest checkpoint, which is of step {}; checkpoint.every_steps saves more often. "
        "Start the run again.",
        Plural(steps - *saved, "step is", "steps are"), *saved);
  }
  return fmt::format(
      "{} lost, since the run keeps no checkpoints. Set checkpoint.dir, or {}, then start the run again.",
      steps == 0   ? "What it has trained is"
      : steps == 1 ? "1 step is"
                   : fmt::format("{} steps are", steps),
      config.run.dir == kNoRunDirectory ? "leave out --run none"
                                        : "give ps 0 a directory of the run (--run DIR)");
}

void LogRollback(const RolledBack& rolled_back, const char* next, Logger& log) {
  const std::string text = fmt::format("{}; {}", rolled_back.why, next);
  rolled_back.ps_lost ? log.Event(kEventPsLost, LogLevel::kWarning, text) : log.Warning("{}", text);
}

Conversations::Conversations(const Config& config, TaskId self, const std::vector<size_t>& max_open,
                             net::Channel& channel, net::Transport& transport, const Activity& activity,
                             Logger& log, bool was_in_run)
    : config_(config),
      self_(self),
      settings_(RunSettings(config)),
      settings_hash_(SettingsHash(settings_)),
      activity_(activity),
      log_(log),
      incarnation_(net::NewNodeId()),
      started_once_(was_in_run),
      tells_(Clock::now()) {
  std::vector<Heartbeat::Target> targets;
  for (const size_t open : max_open) {
    const TaskId ps{Role::kPs, static_cast<int>(peers_.size())};
    peers_.emplace_back();
    peers_.back().conversation = std::make_unique<Conversation>(channel, config.cluster, ps, open);
    targets.push_back({peers_.back().conversation->node(), peers_.back().conversation->address()});
  }
  heartbeat_ = std::make_unique<Heartbeat>(transport, targets, config.failure.detect_s, activity);
}

bool Conversations::RunRecovers() const { return config_.failure.ps_lost == PsLost::kWait && saves_; }

std::vector<Conversation*> Conversations::all() const {
  std::vector<Conversation*> all;
  for (const Peer& peer : peers_) all.push_back(peer.conversation.get());
  return all;
}

size_t Conversations::IndexOf(net::NodeId node) const {
  size_t ps = 0;
  while (ps < size() && (*this)[ps].node() != node) ++ps;
  return ps;
}

void Conversations::BeginAnew() {
  if (running_ && lost_since_ == TimePoint()) lost_since_ = Clock::now();
  joined_ = running_ = false;
  begun_ = next_hello_ = TimePoint();
  tells_ = WaitPace(Clock::now());
  incarnation_ = net::NewNodeId();
  for (Peer& peer : peers_) {
    peer.conversation->Clear();
    peer.welcomed = false;
    peer.away.reset();
    peer.unknown_since = TimePoint();
    if (!std::exchange(peer.moved, false)) continue;
    peer.conversation->MoveTo(peer.conversation->address());
    if (&peer == &peers_[0]) heartbeat_->Move(0, peer.conversation->address());
  }
}

void Conversations::Started() {
  running_ = started_once_ = true;
  lost_since_ = TimePoint();
}

TimePoint Conversations::SayHello(TimePoint now) {
  if (now < next_hello_) return next_hello_;
  if (begun_ == TimePoint()) begun_ = now;
  for (size_t ps = 0; ps < size(); ++ps) {
    if (!peers_[ps].welcomed) SayHelloTo(ps);
  }
  const double limit_s = started_once_ ? config_.failure.wait_s : config_.failure.startup_timeout_s;
  const TimePoint since = lost_since_ == TimePoint() ? begun_ : lost_since_;
  if (SecondsBetween(since, now) > limit_s) {
    throw PeerLost("{} s ({}) have passed; waiting for {}. Start what is missing, or look at its log.",
                   limit_s, started_once_ ? "failure.wait_s" : "failure.startup_timeout_s", Missing());
  }
  if (!peers_[0].welcomed) CheckStop(now);
  if (tells_.IsDue(now)) {
    const auto is_held = [](const Peer& peer) { return !peer.welcomed && peer.held; };
    const bool held = std::any_of(peers_.begin(), peers_.end(), is_held);
    log_.Info("waiting for {}; {}", Missing(),
              held ? fmt::format("if that one is alive, this one ends within {} s (failure.detect_s)",
                                 config_.failure.detect_s)
                   : GivesUpText(config_, since, limit_s));
  }
  next_hello_ = now + (now - begun_ < kEagerFor ? kEagerHello : kPatientHello);
  return next_hello_;
}

void Conversations::SayHelloTo(size_t ps) {
  const auto hello = [&](flatbuffers::FlatBufferBuilder& builder) {
    const auto list = peers_[ps].wants_settings ? EncodeSettings(settings_, builder) : 0;
    const auto address = builder.CreateString(AddressOf(config_.cluster, self_));
    const auto process = builder.CreateString(ProcessText());
    const auto host = builder.CreateString(HostId());
    const auto version = builder.CreateString(kVersion);
    const std::string& dir = config_.checkpoint.dir;
    return wire::CreateHello(
        builder, net::kProtocol, self_.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker,
        static_cast<uint32_t>(self_.index), static_cast<uint32_t>(ps), address, process, version, list,
        incarnation_, host, WorkersAtOnce(config_.device), dir.empty() ? 0 : builder.CreateString(dir),
        settings_hash_, peers_[ps].conversation->next_request());
  };
  peers_[ps].conversation->Tell(peers_[ps].run, hello);  // lost while not connected; said again soon
}

// A task that is to stop before ps 0 has let it in, or in again, waits a moment for that, then ends alone.
void Conversations::CheckStop(TimePoint now) {
  const int signal = activity_.stop_signal();
  if (signal == 0) return;
  if (stop_asked_ == TimePoint()) stop_asked_ = now;
  if (now - stop_asked_ < kStopAloneAfter) return;
  StopAlone(signal,
            started_once_ ? "while it waited for " + Missing() : "before this task had joined the run");
}

// A run is saved and ended by ps 0. If that is gone, a task that is to stop need not wait until it is lost.
void Conversations::CheckStopWithoutLeader(TimePoint now) {
  const int signal = activity_.stop == nullptr ? 0 : activity_.stop->signal();
  if (signal == 0 || !joined_ || now < next_probe_) return;
  const Conversation& leader = *peers_[0].conversation;
  const double silent_s = heartbeat_->SilentSeconds(0);
  const double beat_s = 1e-3 * static_cast<double>(Heartbeat::Interval(config_.failure.detect_s).count());
  if (silent_s <= beat_s || !leader.WasConnected()) return;
  next_probe_ = now + kProbeEvery;
  const net::ProbeResult probe = net::Probe(leader.address(), kProbeTimeout);
  if (probe.status == net::ProbeStatus::kRefused && LeaderDecides() && self_.role == Role::kPs) {
    return LoseLeader("is gone, and the run is to stop");
  }
  if (probe.status == net::ProbeStatus::kRefused && LeaderDecides() && !heartbeat_->IsAway(1)) {
    // ps 1 is told to stop too, and leads the run to its end: it needs this worker to have whole steps.
    if (stop_asked_ == TimePoint()) stop_asked_ = now;
    if (SecondsBetween(stop_asked_, now) < config_.failure.grace_s) return;
  }
  if (probe.status == net::ProbeStatus::kRefused) {
    StopAlone(signal, fmt::format("when {} was gone: {}", leader.name(), probe.text));
  }
  if (std::exchange(told_wait_, true)) return;
  const double left_s = std::max(config_.failure.detect_s - silent_s, 0.0);
  log_.Info(
      "{}: waits for {} to end the run; it has not been heard for {:.1f} s and is lost at {} "
      "(failure.detect_s)",
      SignalName(signal), leader.name(), silent_s,
      TimeOfDay(now + milliseconds(static_cast<int64_t>(1000 * left_s))));
}

void Conversations::StopAlone(int signal, const std::string& when) const {
  RunSummary summary;
  summary.status = "stopped";
  const std::string& saved_in = config_.checkpoint.dir;
  const bool saved = saves_ || !saved_in.empty();
  const std::string where = saved_in.empty() ? "what ps 0 has saved" : "what is in " + saved_in;
  const std::string kept = !saved          ? fmt::format("; {}", kNothingKept)
                           : started_once_ ? fmt::format("; {} stays as it is", where)
                                           : "";
  throw RunStopped(saved ? StopExitCode(signal) : ExitCode::kInternal,
                   fmt::format("stopped by {} {}{}", SignalName(signal), when, kept), std::move(summary));
}

std::string Conversations::Missing() const {
  std::string missing;
  for (const Peer& peer : peers_) {
    if (!peer.welcomed) missing += (missing.empty() ? "" : ", ") + WhyMissing(peer);
  }
  return missing;
}

// "ps 1 (10.0.0.2:9001): connection refused; start it, or check the address". Connects to the address to
// learn why; that may take half a second, or longer while a name is looked up.
std::string Conversations::WhyMissing(const Peer& peer) const {
  const std::string& name = peer.conversation->name();
  if (!peer.refusal.empty() && Clock::now() - peer.refused < kFreshRefusal) return name + ": " + peer.refusal;
  const net::ProbeResult probe = net::Probe(peer.conversation->address(), kProbeTimeout);
  if (probe.status != net::ProbeStatus::kOpen) return name + ": " + probe.text;
  const std::string why = peer.conversation->WhyNotConnected();
  if (!why.empty()) return name + ": " + why;
  return name + ": listens, but has not answered yet; if that lasts, check the address and its log";
}

bool Conversations::Take(size_t ps, const wire::Envelope& envelope) {
  switch (envelope.body_type()) {
    case Body::Welcome:
      OnWelcome(ps, RunIdOf(envelope), *envelope.body_as_Welcome());
      return true;
    case Body::Refuse:
      OnRefuse(ps, *envelope.body_as_Refuse());
      return true;
    case Body::Abort:
      OnAbort(*envelope.body_as_Abort());
    case Body::Heartbeat:
      return true;  // ps 0 asks whether this connection is open
    default:
      return false;
  }
}

void Conversations::OnWelcome(size_t ps, RunId run, const wire::Welcome& welcome) {
  if (welcome.leads()) return ps == 1 && run == run_ && LeaderDecides() ? MoveLeader() : void();
  if (welcome.stands_for() != 0) return run == run_ ? OnStandIn(ps, welcome.stands_for()) : void();
  const bool repeated = ps == 0 && !running_ && welcome.incarnation() == leader_incarnation_;
  if (joined_ && LeaderDecides() && run == run_ && !repeated) return OnBack(ps);
  if (joined_) return;  // a repeated Welcome
  peers_[ps].welcomed = true;
  peers_[ps].run = run;
  heartbeat_->InRun(ps, run);
  if (ps == 0) saves_ = welcome.saves();
  if (ps == 0) feed_token_ = welcome.feed_token();
  if (ps == 0) replica_ = welcome.replica();
  if (ps == 0) leader_incarnation_ = welcome.incarnation();
  const auto all = [&](auto is) { return std::all_of(peers_.begin(), peers_.end(), is); };
  if (!all([](const Peer& peer) { return peer.welcomed; })) return;
  if (!all([&](const Peer& peer) { return peer.run == peers_[0].run; })) {
    // ps 0 was restarted in between: says Hello to all again.
    for (Peer& peer : peers_) peer.welcomed = false;
    return;
  }
  joined_ = true;
  run_ = peers_[0].run;
  log_.SetRun(run_.id);
  for (size_t i = 0; i < size(); ++i) heartbeat_->Watch(i, run_);
}

// The ps has other settings, or has them in another order, and asks for them to tell the difference.
void Conversations::TellSettings(size_t ps) {
  if (peers_[ps].welcomed || std::exchange(peers_[ps].wants_settings, true)) return;
  SayHelloTo(ps);
}

// Keeps a refusal whose reason may pass, for WhyMissing(). For a task that was in the run before, any may
// pass: a ps that was restarted with a wrong config may be restarted with the right one.
void Conversations::OnRefuse(size_t ps, const wire::Refuse& refuse) {
  Peer& peer = peers_[ps];
  const std::string text = ShortText(refuse.text()->str());
  if (refuse.reason() == Reason::Config && text.empty()) return TellSettings(ps);
  const std::string& name = peer.conversation->name();
  peer.held = refuse.reason() == Reason::Held;
  switch (refuse.reason()) {
    case Reason::NotReady:
    case Reason::Held:
      peer.refusal = text;
      break;
    case Reason::Unregistered:
    case Reason::Run:
      if (ps == 0 && peer.moved) return;  // ps 1 may not lead yet
      if (ps > 0 && LeaderDecides()) return OnUnknown(ps, refuse, text);
      peer.welcomed = false;
      if (joined_) OnForgotten(peer, refuse.reason() == Reason::Run ? "" : text);
      return;
    case Reason::BadRequest:
      throw Failure(ExitCode::kInternal,
                    fmt::format("{} refused a request of {}: {}", name, TaskName(self_), text));
    default:
      if (!started_once_ || peer.welcomed || refuse.reason() == Reason::Duplicate) {
        throw UserError("{} refuses {}: {}.", name, TaskName(self_), text);
      }
      peer.refusal = "refuses this task: " + text;
  }
  peer.refused = Clock::now();
}

// `why`: from a ps that knows the run; empty: it was restarted, or the run has gone back to a checkpoint.
void Conversations::OnForgotten(const Peer& peer, const std::string& why) {
  const std::string& name = peer.conversation->name();
  if (running_ && !why.empty()) throw PeerLost("{} does not know this task any more: {}.", name, why);
  if (running_ && !RunRecovers()) {
    throw PeerLost("{} was restarted during the run and has lost its state. {}", name, WhatIsLost());
  }
  throw RolledBack{why.empty() ? name + " was restarted, or has gone back to a checkpoint"
                               : name + " does not know this task any more: " + why};
}

void Conversations::OnAbort(const wire::Abort& abort) {
  SayBye();
  ThrowAbort(config_.cluster, abort);
}

void Conversations::CheckAlive() {
  for (size_t ps = 0; ps < size(); ++ps) CheckAlive(ps, Clock::now());
}

void Conversations::CheckAlive(size_t ps, TimePoint now) {
  if (ps == 0) {
    const net::Message abort = heartbeat_->TakeAbort();
    if (!abort.header.empty()) OnAbort(*net::Decode(abort)->body_as_Abort());
  }
  if (ps > 0 && LeaderDecides()) return peers_[ps].moved ? void() : CheckAway(ps, now);
  if (LeaderDecides()) {
    if (heartbeat_->Left(0, run_)) OnForgotten(peers_[0], "");
    CheckLeaderAway(now);
    return peers_[0].moved ? void() : CheckStopWithoutLeader(now);
  }
  if (heartbeat_->Lost(ps)) {
    const size_t longest = heartbeat_->SilentLongest();
    OnLost(longest);
  }
  if (joined_ && heartbeat_->Left(ps, run_)) OnForgotten(peers_[ps], "");
  if (ps == 0) CheckStopWithoutLeader(now);
}

void Conversations::OnLost(size_t ps) {
  const std::string why =
      fmt::format("{} has not been heard for {:.1f} s (failure.detect_s = {})", (*this)[ps].name(),
                  heartbeat_->SilentSeconds(ps), config_.failure.detect_s);
  if (!RunRecovers()) throw PeerLost("{}. Look at its log. {}", why, WhatIsLost());
  if (ps == 0 && on_lost_) on_lost_({Role::kPs, 0}, why);
  throw RolledBack{why, true};
}

bool Conversations::LeaderDecides() const { return joined_ && config_.failure.replicas > 0; }

void Conversations::CheckLeaderAway(TimePoint now) {
  Peer& peer = peers_[0];
  const double wait_s = config_.failure.wait_s;
  if (peer.moved) {
    const bool lost = !IsPs1() && (heartbeat_->Lost(0) || (size() > 1 && heartbeat_->Lost(1)));
    const double limit_s = wait_s + config_.checkpoint.timeout_s;
    if (!lost && SecondsBetween(peer.away->since, now) <= limit_s) return;
    const std::string how =
        lost ? "was lost too"
             : fmt::format("has not within {} s (failure.wait_s and checkpoint.timeout_s)", limit_s);
    throw PeerLost("{} was lost, and ps 1, which was to lead the run to its end, {}. {}",
                   peer.conversation->name(), how, WhatIsLost());
  }
  if (!heartbeat_->IsAway(0) && leader_gone_.empty()) {
    peer.away.reset();
    peer.told_lost = false;
    return;
  }
  const std::string& name = peer.conversation->name();
  if (on_lost_ && heartbeat_->Lost(0) && !std::exchange(peer.told_lost, true)) {
    on_lost_({Role::kPs, 0}, fmt::format("{} has not been heard for {:.1f} s (failure.detect_s = {})", name,
                                         heartbeat_->SilentSeconds(0), config_.failure.detect_s));
  }
  if (!peer.away) peer.away = Peer::Away{now, WaitPace(now)};
  const bool over = SecondsBetween(peer.away->since, now) > wait_s;
  if (over || !leader_gone_.empty()) {
    if (!IsPs1()) return MoveLeader();
    why_leads_ = over ? fmt::format("{} was lost and is not back after {} s (failure.wait_s)", name, wait_s)
                      : fmt::format("{} {}", name, leader_gone_);
    if (leader_gone_.empty() &&
        SecondsBetween(peer.away->since, now) > wait_s + 4 * config_.failure.detect_s) {
      throw PeerLost("{}, and no other task has come to ps 1, which was to lead the run to its end. {}",
                     why_leads_, WhatIsLost());
    }
    return;
  }
  if (peer.away->tells.IsDue(now)) {
    log_.Info("waiting for {}; {}", name, GivesUpText(config_, peer.away->since, wait_s));
  }
}

void Conversations::MoveLeader() {
  Peer& peer = peers_[0];
  if (std::exchange(peer.moved, true)) return;
  if (!peer.away) peer.away = Peer::Away{Clock::now(), WaitPace(Clock::now())};
  log_.Info("{} does not come back: ps 1 leads the run to its end", peer.conversation->name());
  peer.conversation->MoveTo(config_.cluster.ps[1]);
  heartbeat_->Move(0, config_.cluster.ps[1]);
  peer.conversation->SendAgain();
}

void Conversations::MoveLeaderHere(std::function<void(net::Message)> take) {
  Peer& peer = peers_[0];
  peer.moved = true;
  if (!peer.away) peer.away = Peer::Away{Clock::now(), WaitPace(Clock::now())};
  peer.conversation->MoveHere(std::move(take));
  peer.conversation->SendAgain();
}

void Conversations::CheckAway(size_t ps, TimePoint now) {
  Peer& peer = peers_[ps];
  if (!heartbeat_->IsAway(ps)) {
    peer.away.reset();
    peer.unknown_since = TimePoint();
    return;
  }
  if (!peer.away) peer.away = Peer::Away{now, WaitPace(now)};
  const std::string& name = peer.conversation->name();
  // ps 0 may have noticed by silence what a broken connection has told here at once.
  const double max_s = config_.failure.wait_s + 2 * config_.failure.detect_s;
  if (SecondsBetween(peer.away->since, now) > max_s) {
    throw PeerLost(
        "{} was lost, and ps 0 has not said within {} s (failure.wait_s and twice failure.detect_s) how the "
        "run goes on. Look at their logs. {}",
        name, max_s, WhatIsLost());
  }
  if (peer.away->tells.IsDue(now)) {
    log_.Info("waiting for {}; {}", name, GivesUpText(config_, peer.away->since, max_s));
  }
}

// A ps that has just taken the place of a lost one may say this before it knows all of its workers.
void Conversations::OnUnknown(size_t ps, const wire::Refuse& refuse, const std::string& why) {
  if (refuse.reason() != Reason::Unregistered) return;
  Peer& peer = peers_[ps];
  const TimePoint now = Clock::now();
  if (peer.unknown_since == TimePoint()) peer.unknown_since = now;
  if (SecondsBetween(peer.unknown_since, now) > config_.failure.detect_s) OnForgotten(peer, why);
}

void Conversations::OnBack(size_t ps) {
  Peer& peer = peers_[ps];
  peer.unknown_since = TimePoint();
  heartbeat_->InRun(ps, run_);
  if (peer.moved) return peer.conversation->SendAgain();
  if (std::exchange(peer.away, std::nullopt)) {
    log_.Detail("{} is back: {} sent again", peer.conversation->name(),
                Plural(static_cast<int64_t>(peer.conversation->open()), "request is", "requests are"));
  }
  peer.conversation->SendAgain();
}

// The run ends when what is open is saved.
void Conversations::OnStandIn(size_t ps, size_t of) {
  if (of >= size() || of == ps || !LeaderDecides() || std::exchange(peers_[of].moved, true)) return;
  Conversation& conversation = *peers_[of].conversation;
  log_.Info("{} does not come back: {} stands in for it, until the run is saved", conversation.name(),
            peers_[ps].conversation->name());
  conversation.MoveTo(peers_[ps].conversation->address());
  conversation.SendAgain();
}

// A ps that only ps 0 gives up has net.timeout_ms for what it is asked while it is heard.
bool Conversations::IsOverdue(size_t ps, TimePoint now) {
  Conversation& conversation = (*this)[ps];
  if (!LeaderDecides()) return conversation.Overdue(now, config_.net.timeout_ms);
  // Answers of ps 0 wait for its replica on ps 1.
  const bool waits = ps == 0 && size() > 1 && heartbeat_->IsAway(1);
  if (waits || heartbeat_->IsAway(ps)) conversation.CountFrom(now);
  const int64_t beats_ms = 3 * Heartbeat::Interval(config_.failure.detect_s).count();
  return conversation.Overdue(now, std::max(config_.net.timeout_ms, beats_ms));
}

std::string Conversations::WhatIsLost() const {
  const int64_t steps = activity_.global_step.load();
  const KnownCheckpoint newest = heartbeat_->checkpoint();
  const int64_t saved = newest.where.empty() ? steps : newest.step;
  return LostStepsText(config_, steps, saves_ ? std::make_optional(saved) : std::nullopt);
}

void Conversations::OnQuiet(TimePoint now, const char* what) {
  for (size_t ps = 0; ps < size(); ++ps) {
    CheckAlive(ps, now);
    Conversation& conversation = (*this)[ps];
    if (IsOverdue(ps, now) && what != nullptr) {
      throw PeerLost(
          "{}: no reply to {} at local step {} in {} ms (net.timeout_ms). Is it alive? See its log.",
          conversation.name(), what, activity_.local_step.load(std::memory_order_relaxed),
          config_.net.timeout_ms);
    }
    conversation.OnQuiet(now);
  }
  if (running_ || !tells_.IsDue(now)) return;
  const std::string status = heartbeat_->status();
  if (!status.empty()) log_.Info("waiting: {}", status);
}

void Conversations::Abort(int exit_code, const std::string& text, const RunSummary* summary) {
  (*this)[0].Tell(run_, [&](auto& builder) { return CreateAbort(builder, exit_code, self_, text, summary); });
}

void Conversations::SayBye() {
  (*this)[0].Tell(
      run_, [](auto& builder) { return wire::CreateBye(builder); }, (*this)[0].NextRequest());
}

}  // namespace dtrain
