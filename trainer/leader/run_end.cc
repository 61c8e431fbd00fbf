#include "trainer/leader/run_end.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/fault_point.h"
#include "trainer/config/config.h"
#include "trainer/model/finite.h"
#include "trainer/model/model.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/worker_result.h"

namespace dtrain {
namespace {

// The summary must fit into a header.
constexpr size_t kMaxEndBytes = net::kMaxHeaderBytes - 64 * 1024;
// How long ps 0 stays after the end for tasks that have not said Bye.
constexpr milliseconds kStayForBye{3000};
// How often a ps that has not reported is asked again.
constexpr milliseconds kAskAgain{500};

// The CRC-32C of so many bytes that are 0.
uint32_t CrcOfZeros(uint64_t bytes) {
  uint32_t crc = 0, of_power = Crc32cExtend(0, "", 1);
  for (uint64_t power = 1; power <= bytes; power *= 2) {
    if ((bytes & power) != 0) crc = Crc32cCombine(crc, of_power, power);
    of_power = Crc32cCombine(of_power, of_power, power);
  }
  return crc;
}

}  // namespace

RunEnd::RunEnd(const Config& config, const Layout& layout, TaskTable& members, const Evaluations& evaluations,
               const RunHistory& history, Outbox& outbox, Logger& log)
    : config_(config),
      layout_(layout),
      members_(members),
      evaluations_(evaluations),
      history_(history),
      outbox_(outbox),
      log_(log),
      reports_(config.cluster.ps.size()),
      missing_reports_(reports_.size()) {}

void RunEnd::Begin(TimePoint now) {
  begun_ = true;
  evaluating_ = true;
  next_question_ = now;
  Tick(now);
}

void RunEnd::Tick(TimePoint now) {
  if (!begun_) return;
  if (missing_reports_ > 0 && now >= next_question_) {
    next_question_ = now + kAskAgain;
    AskPs();
  }
  if (missing_reports_ == 0 && evaluating_) AskForEvaluation();
}

void RunEnd::AskPs() {
  for (size_t ps = 1; ps < reports_.size(); ++ps) {
    const Member& member = members_.Ps(ps);
    if (reports_[ps] || !member.here() || member.fills) continue;
    outbox_.Answer(member.node, 0, [](auto& builder) { return wire::CreateOrder(builder, 0, 0, true); });
  }
}

// Whether the list has the parts of that ps's range. Compares in place: a hostile message may refer to one
// long text many times.
bool RunEnd::IsOf(size_t ps, const wire::ChecksumList& list) const {
  const std::vector<Segment> segments = layout_.SegmentsOf(static_cast<int>(ps));
  const auto same = [&](const Segment& segment, const wire::Part* part) {
    const Variable& variable = layout_.variables[static_cast<size_t>(segment.variable)];
    const auto values = static_cast<uint64_t>(segment.rows * variable.cols);
    return part->name()->string_view() == variable.name &&
           part->first_row() == static_cast<uint64_t>(segment.first_row) &&
           part->bytes() == values * sizeof(float) &&
           (part->values() == nullptr || part->values()->size() == values);
  };
  const auto of_rows = static_cast<flatbuffers::uoffset_t>(segments.size());
  return list.parts()->size() >= of_rows &&
         std::equal(segments.begin(), segments.end(), list.parts()->begin(), same) &&
         AreOfRows(ps, list, of_rows);
}

// Whether the parts from `first` on are of the ps's rows. A part of a table counts the rows that have
// changed, each with its number.
bool RunEnd::AreOfRows(size_t ps, const wire::ChecksumList& list, flatbuffers::uoffset_t first) const {
  if (!layout_.table) return list.parts()->size() == first;
  const TableLayout& table = *layout_.table;
  const auto row_bytes = static_cast<uint64_t>(table.width()) * sizeof(float) + sizeof(uint64_t);
  if (list.parts()->size() != first + static_cast<size_t>(table.blocks_of_ps())) return false;
  for (int64_t block = 0; block < table.blocks_of_ps(); ++block) {
    const wire::Part& part = *list.parts()->Get(first + static_cast<flatbuffers::uoffset_t>(block));
    const RowRange rows = table.BlockOf(static_cast<int64_t>(ps), block);
    const bool same = part.name()->string_view() == kTableName && part.first_row() == rows.begin &&
                      part.bytes() % row_bytes == 0 && part.bytes() / row_bytes <= rows.size() &&
                      part.values() == nullptr;
    if (!same) return false;
  }
  return true;
}

void RunEnd::OnChecksums(const Member& ps, const wire::ChecksumList& list) {
  const auto index = static_cast<size_t>(ps.task.index);
  if (!begun_ || reports_[index]) return;
  if (!IsOf(index, list)) {
    if (std::exchange(told_misfit_, true)) return;
    return log_.Warning("{} reports on weights that are not its part of the model", members_.NameOf(ps));
  }
  ShardReport report;
  for (const wire::Part* part : *list.parts()) {
    const ModelPart sum{ShortText(part->name()->str()), static_cast<int64_t>(part->first_row()),
                        static_cast<int64_t>(part->bytes()), part->crc()};
    report.parts.push_back({sum, {}});
    if (part->values() == nullptr || layout_.size > ShardReport::kSmallModel) continue;
    report.parts.back().values.assign(part->values()->begin(), part->values()->end());
  }
  if (list.non_finite() != nullptr) report.non_finite = ShortText(list.non_finite()->str());
  if (const wire::TableFigures* const table = list.table()) {
    report.table = {CountIn(table->rows()), CountIn(table->candidates()), CountIn(table->evicted()),
                    CountIn(table->bytes())};
  }
  report.bytes_sent = CountIn(list.bytes_sent());
  report.bytes_received = CountIn(list.bytes_received());
  report.bytes_saved = CountIn(list.bytes_saved());
  TakeReport(index, std::move(report));
}

void RunEnd::TakeReport(size_t ps, ShardReport report) {
  reports_[ps] = std::move(report);
  if (--missing_reports_ == 0) CheckFinite();
}

// The last steps may have overflowed after the last loss was computed.
void RunEnd::CheckFinite() const {
  for (const std::optional<ShardReport>& report : reports_) {
    if (report->non_finite.empty()) continue;
    if (config_.hooks.checks_finite()) {
      throw Diverged(fmt::format("at the end of the run {}", report->non_finite));
    }
    return log_.Warning("at the end of the run {}", report->non_finite);
  }
}

// The worker that was asked may be lost by now. If the next one has not asked for the end yet,
// OnWorkerWaits() asks it then.
void RunEnd::AskForEvaluation() {
  const Member* const evaluator = evaluations_.FinalEvaluator();
  if (evaluator == nullptr) {
    evaluating_ = false;
    if (evaluator_ >= 0) {
      log_.Warning(
          "the final weights are not evaluated: no worker is left that could. Look at the workers' last "
          "lines; "
          "dtrain eval evaluates a checkpoint.");
    }
  } else if (evaluator->task.index != evaluator_ && evaluator->end_request != 0) {
    OnWorkerWaits(*evaluator);
  }
}

void RunEnd::OnWorkerWaits(const Member& worker) {
  if (!begun_ || missing_reports_ > 0 || !evaluating_ || evaluations_.FinalEvaluator() != &worker) return;
  evaluator_ = worker.task.index;
  const FaultScope fault("end.evaluate");
  outbox_.Answer(worker.node, worker.end_request,
                 [](auto& builder) { return wire::CreateGrant(builder, 0, true, 0, /*evaluate=*/true); });
}

bool RunEnd::OnEvaluated(const Member& worker, const wire::Evaluated& said) {
  if (!evaluating_ || worker.task.index != evaluator_) return false;
  evaluating_ = false;
  summary_.bytes_sent = AddCounts(summary_.bytes_sent, CountIn(said.bytes_sent()));
  summary_.bytes_received = AddCounts(summary_.bytes_received, CountIn(said.bytes_received()));
  summary_.validation = FiguresIn(said.validation());
  summary_.test = FiguresIn(said.test());
  return true;
}

// Steps from a checkpoint may be of an earlier run, except when this ps 0 was restarted in the middle of one.
bool RunEnd::TookPart(const Member& member) const {
  const auto index = static_cast<size_t>(member.task.index);
  const bool started = index < history_.took_part.size() && history_.took_part[index];
  return started || (history_.peers_returned && member.taken > 0);
}

namespace {

void Add(const TableFigures& figures, std::optional<TableFigures>* sum) {
  if (!*sum) sum->emplace();
  (*sum)->rows = AddCounts((*sum)->rows, figures.rows);
  (*sum)->candidates = AddCounts((*sum)->candidates, figures.candidates);
  (*sum)->evicted = AddCounts((*sum)->evicted, figures.evicted);
  (*sum)->bytes = AddCounts((*sum)->bytes, figures.bytes);
}

}  // namespace

void RunEnd::SumUpShards() {
  std::vector<ModelPart> parts;
  std::map<std::string, std::map<int64_t, std::vector<float>>> values;  // by variable and first row
  for (std::optional<ShardReport>& report : reports_) {
    summary_.bytes_sent = AddCounts(summary_.bytes_sent, report->bytes_sent);
    summary_.bytes_received = AddCounts(summary_.bytes_received, report->bytes_received);
    summary_.bytes_saved = AddCounts(summary_.bytes_saved, report->bytes_saved);
    if (report->table) Add(*report->table, &summary_.table);
    for (ShardReport::Part& part : report->parts) {
      if (!part.values.empty()) values[part.sum.name][part.sum.first_row] = std::move(part.values);
      parts.push_back(std::move(part.sum));
    }
  }
  summary_.model_crc = ModelChecksum(std::move(parts));
  for (const auto& [name, rows] : values) {
    for (const auto& [first_row, some] : rows) {
      summary_.weights[name].insert(summary_.weights[name].end(), some.begin(), some.end());
    }
  }
}

namespace {

// The CRC-32C that a part of the model had before the first step; IsOf() has seen that it is one.
uint32_t CrcAtBegin(const ModelConfig& model, const Layout& layout, const ModelPart& part) {
  const auto variable = std::find_if(layout.variables.begin(), layout.variables.end(),
                                     [&](const Variable& one) { return one.name == part.name; });
  DT_CHECK(variable != layout.variables.end());
  std::vector<float> values(static_cast<size_t>(part.bytes) / sizeof(float));
  const int64_t begin = variable->offset + part.first_row * variable->cols;
  InitialValues(model, layout, {begin, begin + static_cast<int64_t>(values.size())}, values.data());
  return Crc32cExtend(0, values.data(), values.size() * sizeof(float));
}

}  // namespace

// Weights that are all 0 say nothing of the features; l1 may have made them so. Nor do those that no step has
// changed, which is seen of models that are quickly made again.
void RunEnd::CheckLearned(const Reached& reached) const {
  constexpr int64_t kMaxSize = int64_t{1} << 20;  // drawn again within some ms
  const bool made = history_.first_step == 0 && config_.checkpoint.start_from.empty() && !layout_.table &&
                    layout_.size <= kMaxSize;
  bool zeros = true;
  const auto is_as_begun = [&](const ShardReport::Part& part) {
    const ModelPart& sum = part.sum;  // of a table it has the rows that have changed
    const bool zero = sum.crc == CrcOfZeros(static_cast<uint64_t>(sum.bytes));
    if (sum.name.rfind("biases/", 0) == 0 || zero) return true;
    zeros = false;
    return made && sum.crc == CrcAtBegin(config_.model, layout_, sum);
  };
  const bool all =
      std::all_of(reports_.begin(), reports_.end(), [&](const std::optional<ShardReport>& report) {
        return std::all_of(report->parts.begin(), report->parts.end(), is_as_begun);
      });
  const std::vector<NamedOptimizer> optimizers = OptimizersOf(config_.train);
  const bool has_l1 = std::any_of(optimizers.begin(), optimizers.end(),
                                  [](const NamedOptimizer& each) { return each.values.l1 > 0; });
  if (!all || reached.global_step == history_.first_step || has_l1) return;
  log_.Warning(
      "all weights of the model are {}, biases aside: nothing was learned from the features. No feature may "
      "have a value other than 0, no row a weight (data.weight), or features are too large or small for "
      "float32 (data.scale: standard), or {}.learning_rate = {} is too small",
      zeros ? "0" : "as they began", optimizers[0].key, optimizers[0].values.learning_rate);
}

void RunEnd::SumUpWorkers(const Reached& reached) {
  const bool nothing_left = reached.global_step == history_.first_step && reached.global_step > 0;
  summary_.status = nothing_left ? "already_done" : "done";
  if (nothing_left && !history_.other_data.empty()) summary_.other_data = history_.other_data;
  summary_.identity = IdentityOf(history_.run, members_);
  summary_.deterministic = !reached.disturbed && FirstNondeterministicKey(config_).empty();
  summary_.global_step = reached.global_step;
  std::vector<WorkerResult> results;
  for (const Member& member : members_.all()) {
    if (member.task.role != Role::kWorker) continue;
    results.push_back(member.result);
    if (member.done) continue;
    results.back().local_steps = member.taken;
    (TookPart(member) ? summary_.lost_workers : summary_.absent_workers).push_back(member.task.index);
  }
  summary_.examples = reached.other_examples;
  summary_.progressive_loss = reached.progressive_loss;
  // A restarted ps 0 knows only the steps since its own start.
  const int64_t since = history_.peers_returned ? history_.first_nanos : 0;
  if (!history_.peers_returned) summary_.steps_before = history_.first_step;
  SumUp(results, reached.first_applied_nanos, {history_.first_step, history_.first_examples, since},
        &summary_);
  if (config_.train.mode == TrainMode::kSync && config_.data.split != Split::kDynamic && reached.disturbed) {
    log_.Info(
        "not the weights of an undisturbed run: rounds went on without a worker or before it came, or one "
        "came with other rows");
  }
}

void RunEnd::Tell(const Reached& reached, TimePoint now) {
  CheckLearned(reached);
  SumUpShards();
  SumUpWorkers(reached);
  if (!history_.checkpoint.empty()) summary_.checkpoint = history_.checkpoint;
  summary_.steps_given_again = history_.steps_given_again;
  if (Shorten(kMaxEndBytes, &summary_)) {
    log_.Warning("too many workers: {} left out of the result",
                 summary_.local_steps.empty() ? "the figures of each are" : "where the time of each went is");
  }
  summary_json_ = ToWireJson(summary_);
  told_at_ = now;
  // Workers first: a ps 0 that is lost meanwhile and comes back can do without them sooner than without a ps.
  for (const bool workers : {true, false}) {
    for (const Member& member : members_.all()) {
      if (member.is_worker() == workers && member.end_request != 0) Send(member);
    }
  }
}

bool RunEnd::HoldsRun(const Member& member) const {
  return HasReplica(config_) && !member.is_worker() && member.task.index == 1;
}

void RunEnd::TellHolder(TimePoint now) {
  if (!HasReplica(config_) || told_holder_) return;
  const Member& holder = members_.Ps(1);
  const bool others = std::all_of(members_.all().begin(), members_.all().end(), [&](const Member& member) {
    return !member.here() || member.told || &member == &holder;
  });
  if (!others && now - told_at_ < kStayForBye / 2) return;
  told_holder_ = true;
  if (holder.end_request != 0) Send(holder);
}

void RunEnd::Send(const Member& member) {
  if (HoldsRun(member) && !told_holder_) return;
  const FaultScope fault("end.results");
  outbox_.Answer(member.node, member.end_request, [&](auto& builder) {
    return wire::CreateEnd(builder, builder.CreateString(summary_json_));
  });
}

bool RunEnd::Finished(TimePoint now) const { return now - told_at_ > kStayForBye || members_.AllTold(); }

}  // namespace dtrain
