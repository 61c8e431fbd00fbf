#include "trainer/leader/leases.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// How much work a lease is.
constexpr double kLeaseSeconds = 1;
// The steps that a worker reads ahead while it has them.
constexpr int64_t kReadAhead = 8;
// How often a ps that has not reported gets its order again.
constexpr milliseconds kOrderAgain{100};

}  // namespace

Leases::Leases(const Config& config, const Layout& layout, TaskTable& members, RunHistory& history,
               Outbox& outbox, Logger& log)
    : config_(config),
      layout_(layout),
      members_(members),
      history_(history),
      outbox_(outbox),
      log_(log),
      in_step_(config.train.mode == TrainMode::kSync &&
               config.train.aggregate.value_or(static_cast<int64_t>(config.cluster.worker.size())) >=
                   static_cast<int64_t>(config.cluster.worker.size())),
      ahead_((layout.table ? 2 : 1) * config.train.in_flight + 1) {
  const size_t workers = config.cluster.worker.size();
  processes_.resize(workers);
  gone_.resize(workers);
  paces_.resize(workers);
  pauses_.resize(workers);
}

void Leases::BeginAt(const DataPlan& plan, std::optional<int64_t> train_rows) {
  if (config_.data.split != Split::kDynamic || !train_rows) return;
  OrderSpec spec = OrderSpecOf(config_, *train_rows, 0, static_cast<int>(paces_.size()));
  for (const Member& member : members_.all()) {
    if (member.is_worker() && member.is_ready()) devices_ = member.devices;
  }
  spec.devices = devices_;
  std::vector<int64_t> taken;
  for (Pace& pace : paces_) {
    pace.end = members_.Worker(static_cast<int64_t>(taken.size()))->taken;
    taken.push_back(pace.end);
  }
  ledger_.emplace(spec, config_.train.epochs, RemainingData::Of(plan, BatchesPerEpoch(spec)), taken);
  if (!history_.steps_given_again) history_.steps_given_again = 0;
}

std::string Leases::WhyNot(const Member& worker) const {
  if (config_.data.split != Split::kDynamic || !worker.is_worker()) return "";
  for (const Member& other : members_.all()) {
    const bool counts = other.is_worker() && &other != &worker && other.is_ready();
    if (!counts || other.devices == worker.devices) continue;
    return fmt::format(
        "its device.ids are {}, and those of {} are {}. With data.split: dynamic all workers need as many",
        worker.devices, TaskName(other.task), other.devices);
  }
  return on() && worker.devices != devices_
             ? fmt::format(
                   "its device.ids are {}, and those of the run's workers were {}. With data.split: dynamic "
                   "all workers need as many",
                   worker.devices, devices_)
             : "";
}

void Leases::Start(const Member& worker) {
  if (!on()) return;
  Process& process = processes_[Index(worker)];
  if (process.incarnation != worker.incarnation) {
    process = {worker.incarnation, worker.taken};
    pauses_[Index(worker)] = true;
  }
  Ask(worker);
}

// The answer to a gradient names one lease, so the worker must know the one before. With a table it asks for
// the rows of a batch train.in_flight steps ahead.
void Leases::Refill(const Member& worker) {
  if (!on()) return;
  const Pace& pace = paces_[Index(worker)];
  const int64_t few = std::max(ahead_, std::min(pace.steps / 4, ahead_ + kReadAhead));
  if (Left(worker) <= few && worker.taken >= pace.known_at) Deal(worker, /*asks=*/false);
}

bool Leases::Ask(const Member& worker) {
  if (!on() || Left(worker) > 0) return true;
  const Lease* lease = nullptr;
  do {
    lease = Deal(worker, /*asks=*/true);
  } while (lease != nullptr && !lease->taken.empty());
  return Left(worker) > 0;
}

// So many steps more, at most, that all workers run out in the same round: of a round of a few a batch would
// count for more than of a round of all.
int64_t Leases::MaxInStep(const Member& worker) const {
  int64_t left = CeilDiv(ledger_->FreeBatches(), devices_), workers = 0;
  for (const Member& other : members_.all()) {
    if (!other.is_worker() || processes_[Index(other)].incarnation == 0) continue;
    left += Left(other);
    ++workers;
  }
  return left == 0 ? ahead_ : CeilDiv(left, std::max<int64_t>(workers, 1)) - Left(worker);
}

const Lease* Leases::Deal(const Member& worker, bool asks) {
  Pace& pace = paces_[Index(worker)];
  const TimePoint now = Clock::now();
  const double seconds = SecondsBetween(pace.at, now);
  const auto taken = static_cast<double>(worker.taken - pace.taken);
  const auto wanted =
      static_cast<int64_t>(pace.at == TimePoint() ? 0 : taken / std::max(seconds, 1e-3) * kLeaseSeconds);
  const int64_t max = in_step_ ? MaxInStep(worker) : std::numeric_limits<int64_t>::max();
  if (max <= 0) return nullptr;
  const int64_t min = std::min(ahead_, max);
  const Lease* const lease = ledger_->Deal(worker.task.index, std::clamp(wanted, min, max), min, asks);
  if (lease == nullptr) return nullptr;
  const int64_t steps = lease->Steps(devices_);
  const int64_t known_at = worker.taken + (asks ? 0 : config_.train.in_flight);
  pace = {worker.taken, now, steps, lease->step + steps, known_at};
  ++members_.Worker(worker.task.index)->result.leases;
  return lease;
}

net::WeightsHead::Lease Leases::NewestFor(const Member& worker) const {
  if (!on() || worker.taken >= paces_[Index(worker)].known_at) return {};
  const std::deque<Lease>& all = ledger_->Of(worker.task.index);
  if (all.empty() || !all.back().taken.empty()) return {};
  const Lease& newest = all.back();
  return {static_cast<uint64_t>(newest.step), static_cast<uint64_t>(newest.epoch),
          static_cast<uint64_t>(newest.first), static_cast<uint64_t>(newest.batches)};
}

flatbuffers::Offset<WireLeases> Leases::Encode(const Member& worker,
                                               flatbuffers::FlatBufferBuilder& builder) const {
  return on() ? EncodeLeases(ledger_->Of(worker.task.index), builder) : 0;
}

// A worker that sends a gradient has the answers to all but the latest train.in_flight ones.
void Leases::Taken(const Member& worker, int64_t rows) {
  if (!on() || Left(worker) < 0) return;
  ledger_->Taken(worker.task.index, rows);
  ledger_->Confirm(worker.task.index,
                   std::max(processes_[Index(worker)].first_step, worker.taken - config_.train.in_flight));
  TellEnded();
}

void Leases::Dropped(const Member& worker) {
  if (!on() || Left(worker) < 0) return;
  ledger_->Dropped(worker.task.index);
  on_free_();
}

void Leases::Pauses(const Member& worker) {
  if (!on()) return;
  pauses_[Index(worker)] = true;
  ledger_->Confirm(worker.task.index, worker.taken);
  TellEnded();
}

void Leases::TellEnded() {
  if (!ledger_->has_ended()) return;
  for (const LeaseLedger::EndedEpoch& epoch : ledger_->TakeEnded()) {
    const std::string of = config_.train.epochs ? fmt::format(" of {}", *config_.train.epochs) : "";
    log_.Info("epoch {}{} is over: applied once: {} of {}{}", epoch.epoch + 1, of, epoch.rows,
              Plural(epoch.of, "row"), epoch.whole ? "" : " that were left of it");
  }
  on_free_();
}

void Leases::Release(const Member& worker) {
  if (!on()) return;
  Process& process = processes_[Index(worker)];
  if (process.incarnation == 0) return;
  process = Process();
  const LeaseLedger::TakenByPs all{worker.taken, 0, 1};
  ledger_->Lose(worker.task.index, std::vector<LeaseLedger::TakenByPs>(config_.cluster.ps.size(), all),
                false);
  paces_[Index(worker)].end = worker.taken;
  TellEnded();
}

// Where rounds wait for a lost worker, it goes on with the step that it was at, and the ps know which they
// have.
void Leases::Lost(Member& worker) {
  if (!on() || processes_[Index(worker)].incarnation == 0) return;
  const Process process = std::exchange(processes_[Index(worker)], Process());
  if (RoundsWaitForLost(config_)) return;
  gone_[Index(worker)] = Gone{static_cast<uint32_t>(worker.task.index), process,
                              std::vector<std::optional<TakenOfProcess>>(config_.cluster.ps.size())};
  OrderReports(*gone_[Index(worker)]);
  TakeReport(Index(worker), 0, worker.TakeNoMoreOf(process.incarnation));
}

void Leases::OrderReports(const Gone& gone) const {
  for (size_t ps = 1; ps < gone.by_ps.size(); ++ps) {
    const Member& member = members_.Ps(ps);
    if (gone.by_ps[ps] || !member.here() || member.fills) continue;  // it does not know what it has taken yet
    outbox_.Answer(member.node, 0, [&](auto& builder) {
      return wire::CreateOrder(builder, 0, 0, false,
                               wire::CreateIncarnation(builder, gone.worker, gone.process.incarnation));
    });
  }
}

void Leases::OnTaken(const Member& ps, const wire::TakenState& state) {
  const size_t worker = state.worker();
  if (worker >= gone_.size() || !gone_[worker]) return;
  if (state.incarnation() != gone_[worker]->process.incarnation) return;
  TakeReport(worker, static_cast<size_t>(ps.task.index),
             {state.incarnation(), state.gradients(), state.blocks(), state.dropped()});
}

void Leases::TakeReport(size_t worker, size_t ps, const TakenOfProcess& count) {
  Gone& gone = *gone_[worker];
  gone.by_ps[ps] = count;
  const auto said = [](const auto& one) { return one.has_value(); };
  if (std::all_of(gone.by_ps.begin(), gone.by_ps.end(), said)) Resolve(worker);
}

// A late gradient of sync is in no weights, also if ps 0 has not got as far as to know that.
void Leases::Resolve(size_t index) {
  const Gone gone = *std::exchange(gone_[index], std::nullopt);
  Member& worker = *members_.Worker(static_cast<int64_t>(index));
  const TakenOfProcess& own = *gone.by_ps[0];
  std::vector<LeaseLedger::TakenByPs> by_ps;
  for (size_t ps = 0; ps < gone.by_ps.size(); ++ps) {
    TakenOfProcess count = *gone.by_ps[ps];
    if (count.dropped && count.gradients > own.gradients) --count.gradients;
    by_ps.push_back({gone.process.first_step + CountIn(count.gradients), static_cast<uint32_t>(count.blocks),
                     static_cast<uint32_t>(BlocksOf(layout_, ps))});
  }
  const bool keeps = config_.failure.worker_lost == WorkerLost::kWait;
  const int64_t left = Left(worker);
  const int64_t again = ledger_->Lose(worker.task.index, by_ps, keeps);
  *history_.steps_given_again += again;
  const std::deque<Lease>& own_leases = ledger_->Of(worker.task.index);
  Pace& pace = paces_[index];
  pace.end = worker.taken;
  if (!own_leases.empty()) pace.end = own_leases.back().step + own_leases.back().Steps(devices_);
  if (left > 0) {
    log_.Info("{}: the {} left of its lease {}", TaskName(worker.task), Plural(left, "step"),
              keeps ? "stay its own" : "go to the others");
  }
  if (again > 0) {
    log_.Info("{}: some ps lack {} of it, computed again for them", TaskName(worker.task),
              Plural(again, "step"));
  }
  if (ledger_->HasTorn()) held_ = false;
  TellEnded();
  on_free_();
}

void Leases::Tick(TimePoint now) {
  if (now < next_order_) return;
  next_order_ = now + kOrderAgain;
  for (const std::optional<Gone>& gone : gone_) {
    if (gone) OrderReports(*gone);
  }
}

// In sync all ps take their snapshots at the same round.
bool Leases::Hold(bool at_end) {
  if (!on() || config_.train.mode == TrainMode::kSync) return true;
  const bool unknown =
      std::any_of(gone_.begin(), gone_.end(), [](const auto& gone) { return gone.has_value(); });
  if (unknown || (!at_end && ledger_->HasTorn())) return false;
  held_ = true;
  return std::all_of(members_.all().begin(), members_.all().end(), [&](const Member& member) {
    return !member.is_worker() || processes_[Index(member)].incarnation == 0 || pauses_[Index(member)];
  });
}

}  // namespace dtrain
