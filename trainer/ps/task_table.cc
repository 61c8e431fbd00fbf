#include "trainer/ps/task_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

using wire::Reason;

// The longest silence that one tick adds: a ps that was itself stopped must not blame its members.
constexpr milliseconds kMaxTick{250};

TaskTable::Decision Refusal(Reason reason, std::string text) {
  return {false, reason, std::move(text), std::nullopt};
}

Settings SettingsOf(const wire::Hello& hello) {
  Settings settings;
  for (const auto* setting : *hello.settings()) {
    settings.emplace_back(setting->key()->str(), setting->value()->str());
  }
  return settings;
}

}  // namespace

std::string RowsOfGoneText(const Config& config) {
  const bool dealt = config.data.split == Split::kDynamic && config.failure.worker_lost != WorkerLost::kWait;
  return dealt ? "; its rows go to the others (data.split: dynamic)" : "";
}

TaskId TaskOf(const wire::Hello& hello) {
  return {hello.role() == wire::Role::Ps ? Role::kPs : Role::kWorker, static_cast<int>(hello.index())};
}

TaskTable::TaskTable(const Config& config, TaskId self, int64_t blocks)
    : config_(config),
      settings_(RunSettings(config)),
      settings_hash_(SettingsHash(settings_)),
      self_(self),
      detect_(static_cast<int64_t>(config.failure.detect_s * 1000)),
      startup_(static_cast<int64_t>(config.failure.startup_timeout_s * 1000)),
      last_tick_(Clock::now()) {
  // More blocks of a round may be open, but only the last has a grant, and no request follows before its
  // answer.
  const bool rounds = config.train.mode == TrainMode::kSync;
  const size_t recent = MaxOpenRequests(MaxOpenBlocks(config.train, rounds ? 1 : blocks));
  const auto add = [&](Role role, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Member member;
      member.task = {role, static_cast<int>(i)};
      member.granted.resize(recent);
      members_.push_back(std::move(member));
    }
  };
  // Only ps 0 has other ps as members.
  if (self.index == 0) add(Role::kPs, config.cluster.ps.size());
  add(Role::kWorker, config.cluster.worker.size());
  members_.erase(std::remove_if(members_.begin(), members_.end(),
                                [&](const Member& member) {
                                  return member.task.role == self.role && member.task.index == self.index;
                                }),
                 members_.end());
}

std::optional<TaskTable::Decision> TaskTable::RefuseStranger(const wire::Hello& hello) {
  if (hello.protocol() != net::kProtocol) {
    return Refusal(Reason::Protocol,
                   fmt::format("wire protocol {} here, {} there; use the same dtrain on "
                               "every machine (there: {})",
                               net::kProtocol, hello.protocol(), ShortText(hello.version()->str())));
  }
  if (hello.ps_index() != static_cast<uint32_t>(self_.index)) {
    return Refusal(
        Reason::WrongTask,
        fmt::format("this is {}, not ps {}; check the order of cluster.ps and the --index of each ps",
                    TaskName(self_), hello.ps_index()));
  }
  const TaskId task = TaskOf(hello);
  const size_t count = task.role == Role::kPs ? config_.cluster.ps.size() : config_.cluster.worker.size();
  if (hello.index() >= count) {
    return Refusal(Reason::Index, fmt::format("{} is outside the spec, which has {} of that role here",
                                              TaskName(task), count));
  }
  if (hello.settings_hash() != settings_hash_) {
    if (auto refusal = CompareSettings(hello)) return refusal;
  }
  const bool leads = self_.role == Role::kPs && self_.index == 0;
  if (leads && config_.checkpoint.dir.empty() && hello.checkpoint_dir() != nullptr) {
    return Refusal(Reason::Config,
                   fmt::format("checkpoint.dir is not set on ps 0 and {} on {}: ps 0 has the checkpoints "
                               "written, so none would be. Set it for ps 0, or for no task",
                               ShortText(hello.checkpoint_dir()->str()), TaskName(task)));
  }
  return std::nullopt;
}

// By the time of the last tick, which is as exact as it needs to be.
std::optional<TaskTable::Decision> TaskTable::CompareSettings(const wire::Hello& hello) {
  if (hello.settings() == nullptr) return Refusal(Reason::Config, "");
  if (compared_ && last_tick_ - *compared_ < kCompareEvery) {
    return Refusal(Reason::NotReady,
                   fmt::format("{} compares the settings of other tasks; wait", TaskName(self_)));
  }
  compared_ = last_tick_;
  // A small frame can refer to one long text many times.
  uint64_t bytes = 0;
  for (const auto* setting : *hello.settings()) bytes += setting->key()->size() + setting->value()->size();
  if (bytes > net::kMaxHeaderBytes) return Refusal(Reason::BadRequest, "its settings are too long");
  const auto difference = FirstDifference(settings_, SettingsOf(hello));
  if (!difference) return std::nullopt;
  const std::string key = ShortText(difference->key);
  const std::string here = TaskName(self_), there = TaskName(TaskOf(hello));
  if (values_told_ == kValuesTold) {
    return Refusal(Reason::Config,
                   fmt::format("{} differs between {} and {}; give every task the same file and --set flags",
                               key, here, there));
  }
  ++values_told_;
  return Refusal(Reason::Config,
                 fmt::format("{} is {} on {} and {} on {}; give every task the same file and --set flags",
                             key, difference->ours, here, ShortText(difference->theirs), there));
}

bool TaskTable::IsClosed(Member& member, const std::function<bool(net::NodeId)>& closed) {
  if (member.asked && last_tick_ - *member.asked < kAskClosedEvery) return false;
  member.asked = last_tick_;
  return closed(member.node);
}

// While no more newcomers are counted, one that is not waits for as long as the old task is here.
TaskTable::Decision TaskTable::Hold(net::NodeId node, const Member& old, const wire::Hello& hello) {
  const std::string both =
      fmt::format("index in use by {}; the newcomer is {}", NameOf(old), ShortText(hello.process()->str()));
  if (held_.size() == kMaxHeld && held_.count(node) == 0) return Refusal(Reason::Held, both);
  Held& held = held_[node];
  // Measured by the clock of the old one's silence, which may start a tick after the newcomer came.
  if (held.time <= detect_ + kMaxTick) {
    Decision decision = Refusal(Reason::Held, both);
    decision.tells = held.time >= std::min(kHeldSilently, detect_) && !std::exchange(held.told, true);
    return decision;
  }
  held_.erase(node);
  return Refusal(Reason::Duplicate, both + ". Give each task an index of its own");
}

TaskTable::Decision TaskTable::Admit(net::NodeId node, const wire::Hello& hello,
                                     const std::function<bool(net::NodeId)>& closed) {
  if (auto refusal = RefuseStranger(hello)) {
    if (refusal->reason != Reason::NotReady && !refusal->text.empty()) {
      last_refusal_ = fmt::format("{} ({}): {}", TaskName(TaskOf(hello)), ShortText(hello.process()->str()),
                                  refusal->text);
    }
    return *refusal;
  }
  const TaskId task = TaskOf(hello);
  const auto same = [&](const Member& member) {
    return member.task.role == task.role && member.task.index == task.index;
  };
  const auto found = std::find_if(members_.begin(), members_.end(), same);
  if (found == members_.end()) {
    return {false, Reason::WrongTask,
            fmt::format("{} has no business with {}", TaskName(task), TaskName(self_)), std::nullopt};
  }
  Member& member = *found;
  if (member.IsGone(hello.incarnation())) {
    return Refusal(Reason::Unregistered, "the run gave this task up" + RowsOfGoneText(config_));
  }
  if (const Member* const owner = Find(node); owner != nullptr && owner != &member) {
    return Refusal(Reason::WrongTask, fmt::format("this connection is that of {}", TaskName(owner->task)));
  }
  Decision decision;
  if (member.here() && member.node != node) {
    if (member.silent <= detect_ && !IsClosed(member, closed)) return Hold(node, member, hello);
    decision.replaced = member.node;
    Remove(member);
  }
  held_.erase(node);
  decision.welcome = true;
  member.node = node;
  member.incarnation = hello.incarnation();
  member.process = ShortText(hello.process()->str());
  member.host = hello.host() == nullptr ? "" : ShortText(hello.host()->str());
  member.at_once = hello.at_once();
  member.last_request = 0;
  member.first_request = hello.first_request();
  member.blocks_come = member.settled_blocks = 0;
  member.settled = 0;
  member.silent = member.stuck = member.since_beat = milliseconds(0);
  Register(member, node);
  return decision;
}

void TaskTable::Register(const Member& member, net::NodeId node) {
  const bool is_new = by_node_.insert_or_assign(node, static_cast<size_t>(&member - members_.data())).second;
  if (is_new && on_known_) on_known_(node, true);
}

void TaskTable::Restore(Member& member, net::NodeId node) {
  if (member.here() && member.node != node) Remove(member);
  member.node = node;
  member.silent = member.stuck = member.since_beat = milliseconds(0);
  if (node != 0) Register(member, node);
}

// A run that goes back to a checkpoint makes another table, and its tasks say Hello anew.
TaskTable::~TaskTable() {
  for (Member& member : members_) {
    if (member.here()) Remove(member);
  }
}

Member* TaskTable::Find(net::NodeId node) {
  const auto found = by_node_.find(node & ~net::NodeId{1});
  return found == by_node_.end() ? nullptr : &members_[found->second];
}

Member& TaskTable::At(TaskId task) {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.task.role == task.role && member.task.index == task.index;
  });
  DT_CHECK(found != members_.end(), TaskName(task));
  return *found;
}

Member* TaskTable::Worker(int64_t index) {
  const auto count = static_cast<int64_t>(config_.cluster.worker.size());
  if (index < 0 || index >= count) return nullptr;
  return &*(members_.end() - count + index);
}

void TaskTable::Remove(Member& member) {
  if (by_node_.erase(member.node) > 0 && on_known_) on_known_(member.node, false);
  member.node = 0;
  member.asked.reset();
  member.last_request = member.settled = 0;
}

// Counts only the time between two beats, so that a silent task is not taken for a stuck one.
void TaskTable::NoteBeat(Member& member, const wire::Heartbeat& beat) {
  const std::string activity = ShortText(beat.activity()->str());
  const bool same = beat.progress() == member.progress && activity == member.activity && activity != kJoining;
  member.stuck = same ? member.stuck + member.since_beat : milliseconds(0);
  member.since_beat = milliseconds(0);
  member.progress = beat.progress();
  if (same) return;
  member.activity = activity;
  if (activity != kLoading) return;
  // Another may wait for what this one makes: the cache that both read.
  for (Member& other : members_) {
    if (other.activity == kLoading) other.stuck = milliseconds(0);
  }
}

std::vector<Member*> TaskTable::Tick(TimePoint now) {
  std::vector<Member*> overdue;
  const auto since = std::chrono::duration_cast<milliseconds>(now - last_tick_);
  const milliseconds counted = std::min(since, kMaxTick);
  if (since > milliseconds(0)) last_tick_ += since;
  for (Member& member : members_) {
    if (!member.here()) continue;
    member.silent = member.heard ? milliseconds(0) : member.silent + counted;
    member.heard = false;
    member.since_beat += counted;
    if (member.silent > detect_ || Stuck(member)) overdue.push_back(&member);
  }
  // Forgets a held newcomer that went away.
  for (auto held = held_.begin(); held != held_.end();) {
    held->second.time += counted;
    held = held->second.time > 2 * (detect_ + kMaxTick) ? held_.erase(held) : std::next(held);
  }
  return overdue;
}

int TaskTable::joined() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const Member& member) { return member.here(); }));
}

int TaskTable::workers() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& member) {
    return member.task.role == Role::kWorker && member.here();
  }));
}

int64_t TaskTable::max_workers() const { return static_cast<int64_t>(config_.cluster.worker.size()); }

int64_t TaskTable::min_workers() const { return config_.cluster.min_workers.value_or(max_workers()); }

namespace {

// All names would be too many to read, and are cut on their way to other tasks.
std::string FirstOf(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kShown, ", "),
                     names.size() - kShown);
}

}  // namespace

std::string TaskTable::Missing(int64_t workers) const {
  std::vector<std::string> names, others;  // missing workers of which only some are needed are in `others`
  int64_t more = workers;
  for (const Member& member : members_) {
    const bool worker = member.task.role == Role::kWorker, needed = !worker || FeedsOthers(member);
    if (worker && (member.here() || needed)) --more;
    if (member.here()) continue;
    (needed ? names : others).push_back(TaskNameAndAddress(config_.cluster, member.task));
  }
  if (more > 0) {
    const bool some = more < static_cast<int64_t>(others.size());
    if (some) {
      names.push_back(fmt::format("{} of {}", more, FirstOf(others)));
    } else {
      names.insert(names.end(), others.begin(), others.end());
    }
  }
  return FirstOf(names);
}

bool TaskTable::FeedsOthers(const Member& member) const {
  return member.is_worker() && member.task.index == 0 && dtrain::FeedsOthers(config_);
}

std::string TaskTable::WhyOverdue(const Member& member) const {
  const auto seconds = [](milliseconds time) { return static_cast<double>(time.count()) / 1000; };
  if (member.silent > detect_) {
    return fmt::format("{} has not been heard for {:.1f} s (failure.detect_s = {})", NameOf(member),
                       seconds(member.silent), config_.failure.detect_s);
  }
  const bool loads = member.activity == kLoading;
  return fmt::format("{} is alive but has {} for {:.1f} s ({} = {}){}", NameOf(member),
                     loads ? "got none of its data" : "done nothing", seconds(member.stuck),
                     loads ? "failure.startup_timeout_s" : "failure.detect_s",
                     loads ? config_.failure.startup_timeout_s : config_.failure.detect_s,
                     loads ? "" : fmt::format("; it was in '{}'", member.activity));
}

RunIdentity IdentityOf(const RunId& run, const TaskTable& members) {
  RunIdentity identity;
  identity.run_id = fmt::format("{:016x}", run.id);
  identity.hosts[TaskName({Role::kPs, 0})] = HostName();
  for (const Member& member : members.all()) {
    const std::string host = member.process.substr(0, member.process.find(','));
    if (!host.empty()) identity.hosts[TaskName(member.task)] = host;
  }
  return identity;
}

std::string TaskTable::NameOf(const Member& member) const {
  const std::string address = KnownAddress(config_.cluster, member.task);
  return fmt::format("{} ({}{}{})", TaskName(member.task), address, address.empty() ? "" : "; ",
                     member.process.empty() ? "never seen" : member.process);
}

bool Member::TakeRequest(uint64_t request, bool* repeated) {
  *repeated = request <= last_request;
  if (*repeated) return true;
  const uint64_t next = last_request == 0 ? first_request : last_request + 1;
  if (request != next && next != 0) return false;
  last_request = request;
  GrantOf(request) = 0;
  return true;
}

void Member::Leave() {
  ready = takes_part = false;
  ready_request = step_request = end_request = next_round = 0;
  waits_for_scale = false;
}

bool Member::IsGone(uint64_t its_incarnation) const {
  return std::any_of(gone.begin(), gone.end(),
                     [&](const TakenOfProcess& of) { return of.incarnation == its_incarnation; });
}

TakenOfProcess Member::TakeNoMoreOf(uint64_t its_incarnation) {
  for (const TakenOfProcess& of : gone) {
    if (of.incarnation == its_incarnation) return of;
  }
  const bool took = of_process.incarnation == its_incarnation;
  gone.push_back(took ? of_process : TakenOfProcess{its_incarnation});
  return gone.back();
}

bool TaskTable::IsAwaited(const Member& member) const {
  return member.lost && config_.failure.worker_lost == WorkerLost::kWait;
}

std::vector<uint32_t> TaskTable::Expected() const {
  std::vector<uint32_t> workers;
  for (const Member& member : members_) {
    if (member.takes_part || IsAwaited(member)) workers.push_back(static_cast<uint32_t>(member.task.index));
  }
  return workers;
}

std::vector<bool> TaskTable::WorkersNow() const {
  std::vector<bool> workers;
  for (const Member& member : members_) {
    if (member.is_worker()) workers.push_back(member.takes_part || member.here() || IsAwaited(member));
  }
  return workers;
}

bool TaskTable::AllDone() const {
  return std::none_of(members_.begin(), members_.end(), [&](const Member& member) {
    return !member.done && (member.takes_part || IsAwaited(member));
  });
}

bool TaskTable::AllTold() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.here() || member.told; });
}

}  // namespace dtrain
