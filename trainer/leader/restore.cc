#include "trainer/leader/restore.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/fault_point.h"
#include "base/names.h"
#include "net/lent_buffer.h"
#include "trainer/batch/class_names.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/order.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

std::string InitialText(const Layout& layout) {
  if (layout.has_hash_table()) return "an empty hash table";
  const std::string tensors =
      fmt::format("{} variables, {} values", layout.variables.size(), layout.parameters());
  if (!layout.table) return tensors;
  const std::string table = fmt::format("a table of {} rows", layout.table->features() + 1);
  return layout.size == 0 ? table : table + ", and " + tensors;
}

// Whether checkpoint.resume is a path.
bool IsAPath(const std::string& resume) { return resume != "auto" && resume != "never"; }

// How often a ps that has not answered gets its order again.
constexpr milliseconds kOrderAgain{100};

}  // namespace

Restore::Restore(Parts parts)
    : parts_(std::move(parts)),
      slots_(SlotsOf(parts_.config)),
      have_(parts_.config.cluster.ps.size()),
      pieces_(have_.size()) {}

void Restore::Begin(bool again, std::optional<DataFacts> data) {
  again_ = again;
  if (again && parts_.directory != nullptr) parts_.directory->CheckClaim();
  data_ = std::move(data);
  begun_ = Clock::now();
  candidates_ = Choose();
  next_ = 0;
  TryNext();
}

// Empty: the run starts from initial values.
std::vector<Restore::Candidate> Restore::Choose() {
  const std::string& resume = parts_.config.checkpoint.resume;
  begins_ = false;
  named_ = false;
  if (!again_ && IsAPath(resume)) return ListNamed();
  if (again_ || resume == "auto") {
    std::vector<Candidate> found = ListDirectory();
    if (found.empty() && again_) NothingToGoBackTo();
    if (!found.empty()) return found;
  }
  if (parts_.config.checkpoint.start_from.empty()) return {};
  return ListChoices();
}

// What checkpoint.resume names: one checkpoint, or those of a directory, the newest first.
std::vector<Restore::Candidate> Restore::ListNamed() {
  const std::string resume = CheckpointsOf(parts_.config.checkpoint.resume);
  std::error_code ignored;
  named_ = IsOneCheckpoint(resume) || !std::filesystem::is_directory(resume, ignored);
  if (named_) return {{resume, resume}};
  const CheckpointDirectory directory(resume, "checkpoint.resume");
  std::vector<std::string> unreadable;
  std::vector<Candidate> found;
  for (const ListedCheckpoint& each : directory.List(&unreadable)) {
    const std::string path = directory.PathOf(each.name);
    found.push_back({path, path});
  }
  for (const std::string& line : unreadable) parts_.log.Warning("{}: {}; skipped", resume, line);
  if (found.empty()) throw NoneComplete(resume, "checkpoint.resume");
  return found;
}

std::vector<Restore::Candidate> Restore::ListChoices() {
  const std::string start_from = CheckpointsOf(parts_.config.checkpoint.start_from);
  begins_ = true;
  named_ = IsOneCheckpoint(start_from);
  std::vector<std::string> unreadable;
  std::vector<Candidate> found;
  for (const std::string& path : ChoicesOf(start_from, &unreadable)) found.push_back({path, path});
  for (const std::string& line : unreadable) parts_.log.Warning("{}: {}; skipped", start_from, line);
  if (found.empty()) NoneIsComplete();
  return found;
}

std::vector<Restore::Candidate> Restore::ListDirectory() {
  std::vector<std::string> unreadable;
  std::vector<ListedCheckpoint> listed;
  if (parts_.directory != nullptr) listed = parts_.directory->List(&unreadable);
  for (const std::string& line : unreadable) {
    parts_.log.Warning("{}: {}; skipped", parts_.directory->path(), line);
  }
  CheckNoneIsMissing(listed);
  std::vector<Candidate> found;
  bool named = false;
  const bool moved = parts_.directory != nullptr && parts_.directory->path() != parts_.config.checkpoint.dir;
  for (const ListedCheckpoint& each : listed) {
    const std::string path = parts_.directory->PathOf(each.name);
    found.push_back({moved ? path : each.name, path});
    named |= IsNewest(found.back());
  }
  if (!named) parts_.history.checkpoint.clear();  // a run that fails must not name what is skipped or gone
  if (found.empty() && !unreadable.empty()) NoneIsComplete();
  return found;
}

// A damaged checkpoint was reported already. One that is not here at all is on another disk. The run ends
// with a UserError, so that no supervisor starts it again: no task would know of a checkpoint then, and the
// run would start from scratch.
void Restore::CheckNoneIsMissing(const std::vector<ListedCheckpoint>& listed) const {
  const KnownCheckpoint& known = parts_.history.known;
  if (known.where.empty()) return;
  const auto as_new = [&](const ListedCheckpoint& each) { return each.step >= known.step; };
  if (std::any_of(listed.begin(), listed.end(), as_new)) return;
  const std::string& dir = parts_.config.checkpoint.dir;
  if (!dir.empty() && !IsGone(dir + "/" + known.name())) return;
  const size_t colon = std::min(known.where.find(':'), known.where.size() - 1);
  // The same command would make a new directory.
  const RunConfig& run = parts_.config.run;
  const bool in_run = run.has_directory() && dir == run.dir + "/checkpoints";
  throw UserError(
      "{} knows of a newer checkpoint of this run than ps 0 has: {} of global step {}; {}. Nothing was begun "
      "anew. Copy {} of {} to {} here, then start the run again{}.",
      parts_.history.known_by, known.name(), known.step,
      dir.empty()      ? "checkpoint.dir is not set for ps 0"
      : listed.empty() ? fmt::format("checkpoint.dir = {} here has none", dir)
                       : fmt::format("the newest of checkpoint.dir = {} here is {} of global step {}", dir,
                                     listed.front().name, listed.front().step),
      known.where.substr(colon + 1), known.where.substr(0, colon), dir.empty() ? "checkpoint.dir" : dir,
      in_run ? ", ps 0 with --run " + run.dir : "");
}

// The run wrote a checkpoint before its first step, so there must be one. Starting anew would silently lose
// the run.
void Restore::NothingToGoBackTo() const {
  const std::string& dir = parts_.config.checkpoint.dir;
  throw UserError(
      "{}: no checkpoint of this run is here to go back to, and nothing was begun anew. Fetch the run's "
      "checkpoints back to checkpoint.dir of ps 0, then start the run again.",
      dir.empty() ? "checkpoint.dir is not set for ps 0" : "checkpoint.dir = " + dir);
}

void Restore::NoneIsComplete() const {
  const std::string& dir = parts_.config.checkpoint.dir;
  if (begins_) throw NothingToBeginWith(parts_.config.checkpoint.start_from);
  const std::string& resume = parts_.config.checkpoint.resume;
  if (!again_) throw IsAPath(resume) ? NoneComplete(resume, "checkpoint.resume") : NoneComplete(dir);
  throw IoError(
      "checkpoint.dir = {}: the run goes back to a checkpoint, and all that are here are damaged (see "
      "above). Fetch a copy of one back, then start the run again: it goes on from there.",
      dir);
}

void Restore::TryNext() {
  reader_.reset();
  while (next_ < candidates_.size()) {
    try {
      Open(candidates_[next_]);
      break;
    } catch (const BadCheckpoint& bad) {
      Skip(bad.problem());
    }
  }
  if (next_ == candidates_.size() && !candidates_.empty()) NoneIsComplete();
  ++order_.number;
  order_.checkpoint = reader_ ? candidates_[next_].name : "";
  order_.step = reader_ && !begins_ ? reader_->manifest().step : 0;
  order_.begins = reader_ && begins_;
  order_.earlier_updates = !reader_  ? 0
                           : begins_ ? reader_->slot_updates()
                                     : reader_->manifest().origin.updates;
  order_.manifest = reader_ ? reader_->manifest().checksum : 0;
  order_.decay_steps = DecaySteps();
  order_.keep = false;
  phase_ = Phase::kFilling;
  OrderAll();
}

void Restore::Open(const Candidate& candidate) {
  auto reader = std::make_unique<CheckpointReader>(candidate.path);
  const MeaningWords words = begins_ ? kStartWords : MeaningWords();
  // Keys and names first: they say why a shape differs.
  if (!again_) {
    CheckKeys(candidate.path, parts_.config, words);
    const std::optional<InputForm>& saved = reader->manifest().inputs;
    if (saved && data_ && data_->form) CheckForm(candidate.path, *saved, *data_->form, words);
    if (!saved) {
      parts_.log.Info("{} does not say of which columns and classes it is: they are not compared",
                      candidate.path);
    }
  }
  begins_ ? reader->BeginWith(parts_.config, parts_.layout) : reader->CheckFits(parts_.layout, slots_);
  reader_ = std::move(reader);
}

void Restore::Skip(const std::string& problem) {
  const Candidate& bad = candidates_[next_];
  if (named_) throw BadCheckpoint(bad.path, problem);
  const bool has_path = bad.name == bad.path;  // it is not of checkpoint.dir
  parts_.log.Warning("{}: {}; skipped", has_path ? bad.path : parts_.config.checkpoint.dir + ": " + bad.name,
                     problem);
  if (IsNewest(bad)) parts_.history.checkpoint.clear();
  ++next_;
}

void Restore::OrderAll() {
  std::fill(have_.begin(), have_.end(), false);
  next_order_ = Clock::now() + kOrderAgain;
  for (size_t ps = 0; ps < have_.size(); ++ps) Order(ps);
}

void Restore::Order(size_t ps) {
  if (ps == 0) return parts_.fill_own(order_);
  const Member& member = parts_.members.At({Role::kPs, static_cast<int>(ps)});
  if (!member.here()) return;
  const FaultScope fault("start.fill");
  parts_.outbox.Answer(member.node, 0, [&](auto& builder) {
    const auto checkpoint = order_.checkpoint.empty() ? 0 : builder.CreateString(order_.checkpoint);
    return wire::CreateOrder(
        builder, wire::CreateFill(builder, order_.number, checkpoint, static_cast<uint64_t>(order_.step),
                                  order_.manifest, order_.keep, order_.begins,
                                  static_cast<uint64_t>(order_.earlier_updates),
                                  static_cast<uint64_t>(order_.decay_steps)));
  });
}

void Restore::Tick(TimePoint now) {
  if (phase_ == Phase::kIdle || now < next_order_) return;
  next_order_ = now + kOrderAgain;
  for (size_t ps = 1; ps < have_.size(); ++ps) {
    if (!have_[ps]) Order(ps);
  }
}

void Restore::OnOutcome(size_t ps, const FillOutcome& outcome) {
  if (phase_ == Phase::kIdle || outcome.number != order_.number) return;
  if (!outcome.error.empty() && phase_ == Phase::kFilling && reader_) {
    Skip(ps == 0 ? outcome.error : fmt::format("{} (found by ps {})", outcome.error, ps));
    return TryNext();
  }
  if (phase_ == Phase::kKeeping && !outcome.kept) return;
  have_[ps] = true;
  GoOnWhenAllHave();
}

void Restore::GoOnWhenAllHave() {
  if (std::find(have_.begin(), have_.end(), false) != have_.end()) return;
  if (!reader_ || phase_ == Phase::kKeeping) return Finish();
  phase_ = Phase::kKeeping;
  order_.keep = true;
  OrderAll();
}

void Restore::OnReadPiece(const Member& ps, const wire::ReadPiece& question) {
  if (phase_ != Phase::kFilling || !reader_ || question.number() != order_.number) return;
  constexpr uint64_t kLast = std::numeric_limits<int64_t>::max();
  const Piece piece{question.part(), static_cast<int64_t>(std::min(question.piece(), kLast))};
  net::LentBytes values;
  try {
    const std::optional<net::LentBytes> read = ReadPiece(static_cast<size_t>(ps.task.index), piece);
    if (!read) return;
    values = *read;
  } catch (const BadCheckpoint& bad) {
    Skip(bad.problem());
    return TryNext();
  }
  const uint64_t sum = parts_.config.net.checksum ? net::PayloadChecksum(values.data, values.size) : 0;
  const FaultScope fault("start.piece");
  parts_.outbox.Piece(ps.node, question.number(), piece, sum, values);
}

// Unset: there is none of this number. Where a part has as many pieces as its rows need, one behind the last
// has no bytes.
std::optional<net::LentBytes> Restore::ReadPiece(size_t ps, Piece piece) {
  PartsOfPs& parts = pieces_[ps];
  if (parts.empty()) parts = PartsOf(parts_.layout, static_cast<int>(ps), slots_.counts());
  if (piece.part >= parts.size()) return std::nullopt;
  const PartPieces& part = *parts[piece.part];
  if (piece.number >= part.count()) return std::nullopt;
  std::vector<std::byte> read;
  if (piece.number < part.CountIn(*reader_)) part.Read(reader_.get(), piece.number, &read);
  const net::LentBuffer bytes(std::max(read.size(), sizeof(float)));
  std::copy(read.begin(), read.end(), reinterpret_cast<std::byte*>(bytes.floats()));
  return bytes.Lend(0, read.size());
}

void Restore::Finish() {
  phase_ = Phase::kIdle;
  for (PartsOfPs& parts : pieces_) parts.clear();
  StartedFrom from;
  from.positions = StartOfData(parts_.config, TrainRows());
  parts_.history.decay_steps = order_.decay_steps;
  if (order_.decay_steps > 0 && !again_) {
    parts_.log.Info("train.optimizer.schedule.decay_steps: auto is {}", order_.decay_steps);
  }
  if (data_ && data_->read && data_->rows) {
    from.positions.labels = data_->labels;
    from.positions.features = data_->features;
  }
  if (data_ && data_->form) {
    from.inputs = data_->form;
    from.fit = FitOf(*data_->form);
  }
  if (reader_) {
    TakeCheckpoint(&from);
    reader_.reset();
  } else {
    parts_.log.Info("initialised {}", InitialText(parts_.layout));
  }
  // The best checkpoint here is of an earlier training.
  if (!again_ && from.path.empty() && parts_.config.eval.keep_best && parts_.directory != nullptr) {
    parts_.directory->ForgetBest();
  }
  parts_.done(from);
}

void Restore::TakeCheckpoint(StartedFrom* from) const {
  const Manifest& manifest = reader_->manifest();
  const std::string& path = reader_->path();
  if (begins_) {
    from->origin = {ShortText(path), reader_->slot_updates()};
    parts_.log.Info(
        "begins with the weights{} of {}, of global step {}, read in {:.2f} s",
        manifest.all_slots() == ModelSlots() || reader_->slots_begin_anew() ? "" : " and optimizer slots",
        path, manifest.step, SecondsSince(begun_));
    if (reader_->slots_begin_anew()) {
      parts_.log.Info("its optimizer was {}: the slots of this run's begin anew", manifest.optimizer);
    }
  } else {
    from->path = path;
    from->step = manifest.step;
    from->origin = manifest.origin;
    TakePositions(from);
    parts_.log.Info("restored {} in {:.2f} s: global step {}", path, SecondsSince(begun_), from->step);
    if (!again_) {
      for (const std::string& line : ChangedKeys(path, parts_.config)) parts_.log.Info("{}", line);
    }
  }
  if (!manifest.inputs) return;
  // The rows of now may lack classes, or give them in another order or spelling.
  if (const auto& saved = manifest.inputs->classes; from->inputs && !saved.empty()) {
    std::vector<std::string>& here = from->inputs->classes;
    const auto is_saved = [&](const std::string& name) { return FindClass(saved, name).has_value(); };
    if (std::all_of(here.begin(), here.end(), is_saved)) here = saved;
  }
  if (!IsFitted(*manifest.inputs)) return;
  from->fit = FitFor(path, FitOf(*manifest.inputs));
  if (!from->inputs) return;
  from->inputs->scale = manifest.inputs->scale;
  if (manifest.inputs->columns.empty()) return;
  from->inputs->columns = manifest.inputs->columns;
  from->inputs->features = manifest.inputs->features;
}

Resumption Restore::ResumeFrom(Positions* saved) const {
  if (!FromJson(reader_->manifest().positions, saved)) {
    throw UserError("{}: manifest: the positions of its workers cannot be read. Name another one.",
                    reader_->path());
  }
  return ResumeAt(order_.step, *saved, parts_.config, TrainRows());
}

// What schedule.decay_steps: auto is in the whole run, its steps before the checkpoint among them.
int64_t Restore::DecaySteps() const {
  Positions saved;
  const DataPlan plan = reader_ && !begins_ ? ResumeFrom(&saved).positions.plan : DataPlan();
  return AutoDecaySteps(parts_.config, StepsOfRun(parts_.config, TrainRows(), plan));
}

void Restore::TakePositions(StartedFrom* from) const {
  Positions saved;
  Resumption resumption = ResumeFrom(&saved);
  if (!resumption.said.empty()) parts_.log.Info("{}", resumption.said);
  resumption.positions.labels = from->positions.labels;
  resumption.positions.features = from->positions.features;
  resumption.positions.disturbed = saved.disturbed;
  if (HasOtherHoldOut(saved, from->positions)) {
    saved.labels.reset();
    saved.features = 0;
    saved.of_workers.clear();
  }
  for (size_t worker = 0; worker < parts_.config.cluster.worker.size(); ++worker) {
    from->trained_on.push_back(FingerprintIn(saved, worker));
  }
  if (!again_ && data_) from->other_data = OtherData(saved, from->positions);
  from->positions = std::move(resumption.positions);
  if (from->other_data.empty()) return;
  parts_.log.Warning(
      "{} was trained on other data: {}. The run goes on from it, which is right if rows were corrected. To "
      "begin anew with its weights, name another checkpoint.dir, and checkpoint.start_from: {}",
      from->path, from->other_data, from->path);
}

// What the weights were trained with counts. Where it is too long for a message, that of the data must be the
// same.
InputForm Restore::FitFor(const std::string& path, const InputForm& saved) const {
  if (FormBytes(saved) <= kMaxFormBytes) return saved;
  InputForm classes;
  classes.classes = saved.classes;
  const bool same_scale = data_ && data_->scale == ScaleChecksum(saved.scale);
  if (same_scale && saved.columns.empty() && FormBytes(classes) <= kMaxFormBytes) return classes;
  throw UserError(
      "{}: the rows of data.train may give another form of the columns now (data.scale, data.categories), "
      "and "
      "that of the checkpoint is too long to be told to the workers. Go on with the rows that it was fitted "
      "on.",
      path);
}

}  // namespace dtrain
