// Rows that come once, through a pipe (data.train.path: "-" or exec:COMMAND, with data.cache: none). The
// first rows are held out as data.validation says and stay in memory; the next ones, a window, fit the scale,
// the names of classes and balanced weights of these, and are trained on like all that follow.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/order/order.h"
#include "trainer/order/window_order.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/file_sets.h"
#include "trainer/sets/memory_rows.h"
#include "trainer/sets/running_scale.h"
#include "trainer/sets/source.h"

namespace dtrain {
namespace {

struct RowWindow : ParsedRows {
  int64_t rows = 0;
  std::vector<float> counts;  // the weights times those of classes; empty: `weights` are all
  SkippedRows skipped;        // in this window and all before it
};

template <typename Value>
void Choose(const std::vector<Value>& from, gpu::Span<const uint32_t> rows, size_t width,
            std::vector<Value>* chosen) {
  if (from.empty()) return;
  chosen->resize(static_cast<size_t>(rows.size) * width);
  for (int64_t i = 0; i < rows.size; ++i) {
    std::copy_n(from.data() + rows[i] * width, width, chosen->data() + static_cast<size_t>(i) * width);
  }
}

// Returns rows of a window, in this order.
RowWindow Chosen(const RowWindow& from, gpu::Span<const uint32_t> rows, int64_t inputs) {
  RowWindow chosen;
  chosen.rows = rows.size;
  if (from.sparse.count() > 0) {
    for (const uint32_t row : rows) chosen.sparse.AddRow(from.sparse, row);
  }
  Choose(from.features, rows, static_cast<size_t>(inputs), &chosen.features);
  Choose(from.classes, rows, 1, &chosen.classes);
  Choose(from.targets, rows, 1, &chosen.targets);
  for (const auto numbers : kNumbersOf<ParsedRows>) Choose(from.*numbers, rows, 1, &(chosen.*numbers));
  return chosen;
}

std::vector<uint32_t> Numbers(int64_t count) {
  std::vector<uint32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

// The scale of the numbers of sparse rows.
FittedScale FitNumbers(const Config& config, const RowWindow& window) {
  const NumberFeatures numbers = NumbersOf(config.model);
  std::vector<float> values(static_cast<size_t>(window.rows * numbers.count));
  const gpu::MatrixView<float> rows(values.data(), window.rows, numbers.count);
  WriteNumbers(window.sparse.rows(), numbers, rows);
  return FitScale(config.data.scale, rows);
}

RowContext ContextOf(const Config& config, const std::vector<InputColumn>& how) {
  RowContext context;
  context.how = how;
  context.inputs = config.model.inputs.value_or(0);
  return context;
}

std::vector<double> WeightsOf(const RowWindow& rows, int64_t classes) {
  std::vector<double> weights(static_cast<size_t>(classes));
  for (size_t i = 0; i < rows.classes.size(); ++i) {
    weights[static_cast<size_t>(rows.classes[i])] += rows.weights.empty() ? 1 : rows.weights[i];
  }
  return weights;
}

// Pipe: reads rows and gives them window by window. Thread: first its owner, then the thread that Run() is
// on; Take() is called by another one.
class Pipe {
 public:
  Pipe(const Config& config, const LabelRules& rules, SourceInputs* inputs,
       const std::vector<InputColumn>& how)
      : data_(config.data),
        rules_(rules),
        window_(RowsOfWindow(config)),
        random_(CounterRandom(config.data.seed).Stream("pipe")),
        pass_(data_, ContextOf(config, how), inputs) {}

  const CsvColumns& columns() const { return pass_.columns(); }
  int64_t inputs() const { return pass_.inputs(); }
  int64_t window() const { return window_; }

  // Reads the first rows, which say what the names of classes are.
  RowWindow ReadHead(int64_t rows) {
    RowLabels labels = pass_.NewLabels(rules_);
    RowWindow window = Read(rows, &labels);
    names_ = labels.names();
    told_ = pass_.skipped();
    return window;
  }
  const std::vector<std::string>& names() const { return names_; }
  void UseScale(const FittedScale& scale) { scale_ = scale; }
  // By number; empty: all count 1.
  void UseClassWeights(std::vector<float> weights) { class_weights_ = std::move(weights); }
  // Gives a window that was read as the head back, to be taken first.
  void GiveBack(RowWindow window) {
    Shuffle(&window);
    Weigh(&window);
    window.skipped = pass_.skipped();
    ready_bytes_ += window.feature_bytes();
    ready_.push_back(std::move(window));
  }

  // Call it before Run(): of the windows, this worker takes every `turns`-th, from number `first` on.
  void TakeTurns(int64_t first, int64_t turns) {
    first_ = first;
    turns_ = turns;
    if (first == 0) return;
    ready_.clear();
    ready_bytes_ = 0;
  }

  // Reads window after window, until the pipe or the reader ends.
  void Run() {
    try {
      while (true) {
        RowLabels labels = pass_.NewLabels(rules_, &names_);
        RowWindow window = Read(window_, &labels);
        const bool last = window.rows == 0;
        if (!last && ++read_ % turns_ != first_) continue;
        if (!scale_.shift.empty()) ApplyScale(scale_, {window.features.data(), window.rows, inputs()});
        Shuffle(&window);
        Weigh(&window);
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return HasRoom() || abandoned_; });
        if (abandoned_) return;
        window.skipped = pass_.skipped();
        ready_bytes_ += window.feature_bytes();
        ready_.push_back(std::move(window));
        changed_.notify_all();
        if (last) return;
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      fault_ = std::current_exception();
      changed_.notify_all();
    }
  }

  // Takes the next window; one without rows is the end. Unset: it is not there after `wait`. Throws what
  // Run() met, behind the windows before it.
  std::optional<RowWindow> Take(milliseconds wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, wait, [&] { return !ready_.empty() || fault_ != nullptr; });
    if (ready_.empty()) {
      if (fault_ != nullptr) std::rethrow_exception(fault_);
      return std::nullopt;
    }
    std::optional<RowWindow> taken = std::move(ready_.front());
    ready_.pop_front();
    ready_bytes_ -= taken->feature_bytes();
    told_ = taken->skipped;
    changed_.notify_all();
    return taken;
  }
  // The rows that were left out of the windows that were taken.
  SkippedRows Skipped() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }
  void Abandon() {
    const std::lock_guard<std::mutex> lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }

 private:
  // Whole steps, so that a batch lies in one window. Without shuffling one step is enough.
  static int64_t RowsOfWindow(const Config& config) {
    const int64_t step = config.train.batch_size * config.device.towers();
    return config.data.shuffle ? std::max<int64_t>(1, WindowRows(config) / step) * step : step;
  }

  RowWindow Read(int64_t max, RowLabels* labels) {
    RowWindow window;
    while (window.rows < max && !abandoned() && pass_.Next(&window, labels)) ++window.rows;
    labels->Finish();
    window.classes = std::move(labels->classes());
    window.targets = std::move(labels->targets());
    return window;
  }
  // Whether another window may be ready. Without shuffling windows are small, and several of them spare the
  // two threads to wait for each other. The lock is held.
  bool HasRoom() const {
    constexpr int64_t kMaxBytes = 1 << 20;
    return ready_.empty() || (!data_.shuffle && ready_bytes_ < kMaxBytes);
  }
  bool abandoned() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return abandoned_;
  }
  void Weigh(RowWindow* window) const {
    if (class_weights_.empty()) return;
    window->counts = window->weights;
    window->counts.resize(window->classes.size(), 1.0f);
    MultiplyWeights(class_weights_, window->classes.data(), window->rows, window->counts.data());
  }
  void Shuffle(RowWindow* window) {
    if (!data_.shuffle || window->rows == 0) return;
    std::vector<uint32_t> order = Numbers(window->rows);
    dtrain::Shuffle(random_.Stream(static_cast<uint64_t>(windows_++)), &order);
    *window = Chosen(*window, order, inputs());
  }

  const DataConfig data_;
  const LabelRules rules_;
  const int64_t window_;
  const CounterRandom random_;
  Pass pass_;
  std::vector<std::string> names_;
  FittedScale scale_;
  std::vector<float> class_weights_;
  int64_t windows_ = 0;  // that were shuffled
  int64_t read_ = 0;     // the number of the last window; the head is 0
  int64_t first_ = 0;
  int64_t turns_ = 1;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<RowWindow> ready_;
  int64_t ready_bytes_ = 0;  // of their features
  SkippedRows told_;         // of the last window that was taken
  std::exception_ptr fault_;
  bool abandoned_ = false;
};

// PipeBatches: the batches of a pipe's windows. Where the run goes on after a loss, the pipe goes on with
// what it has: nothing comes twice.
class PipeBatches : public BatchSource {
 public:
  PipeBatches(const Config& config, std::shared_ptr<Pipe> pipe)
      : pipe_(std::move(pipe)),
        step_rows_(config.train.batch_size * config.device.towers()),
        drop_short_(config.data.last_batch == LastBatch::kDrop),
        sparse_(UsesTable(config)),
        in_head_(pipe_->Skipped()) {
    // The thread may wait for the pipe when the run is over, so it is not waited for.
    std::thread([pipe = pipe_] { pipe->Run(); }).detach();
  }
  ~PipeBatches() override { pipe_->Abandon(); }

  void Attend(std::function<bool()> attend) override { attend_ = std::move(attend); }

  bool Next(Batch* batch) override {
    if (!HasRows()) return false;
    const auto begin = static_cast<size_t>(next_row_);
    const int64_t rows = std::min(step_rows_, window_.rows - next_row_);
    if (rows < step_rows_ && drop_short_) {  // the end
      next_row_ = window_.rows;
      return Next(batch);
    }
    *batch = Batch();
    batch->rows = rows;
    FillFeatures(begin, batch);
    batch->columns = pipe_->inputs();
    batch->labels = window_.classes.empty() ? nullptr : window_.classes.data() + begin;
    batch->targets = window_.targets.empty() ? nullptr : window_.targets.data() + begin;
    const std::vector<float>& weights = window_.weights;
    const std::vector<float>& counts = window_.counts.empty() ? weights : window_.counts;
    batch->weights = counts.empty() ? nullptr : counts.data() + begin;
    batch->weight = weights.empty() ? static_cast<double>(rows)
                                    : std::accumulate(&weights[begin], &weights[begin] + rows, 0.0);
    batch->row_offsets = window_.row_offsets.empty() ? nullptr : window_.row_offsets.data() + begin;
    next_row_ += rows;
    ++steps_;
    return true;
  }
  void ReadAhead() override {}
  int64_t TakeWaitedNanos() override { return std::exchange(waited_nanos_, 0); }
  void AddSkipped(SkippedRows* skipped) const override { skipped->Add(pipe_->Skipped().Since(in_head_)); }
  void Seek(int64_t) override {}
  void Follow(const DataPlan& plan) override { plan_ = plan; }
  const DataPlan& plan() const override { return plan_; }
  int64_t epoch() const override { return 0; }
  int64_t batch_in_epoch() const override { return std::max<int64_t>(0, steps_ - 1); }
  int64_t batches_per_epoch() const override { return 0; }

 private:
  // Rows of a table lie in the window, and sparse ones too, but that their offsets count from there.
  void FillFeatures(size_t begin, Batch* batch) {
    if (!window_.features.empty()) {
      batch->inputs = window_.features.data() + begin * static_cast<size_t>(pipe_->inputs());
      return;
    }
    const auto first = window_.sparse.offsets.begin() + static_cast<std::ptrdiff_t>(begin);
    offsets_.assign(first, first + batch->rows + 1);
    for (int64_t& offset : offsets_) offset -= *first;
    const SparseRows all = window_.sparse.rows();
    batch->sparse = {offsets_.data(), all.ids + *first,
                     all.values == nullptr ? nullptr : all.values + *first};
    if (sparse_) return;
    dense_.resize(static_cast<size_t>(batch->rows * pipe_->inputs()));
    WriteDense(batch->sparse, {dense_.data(), batch->rows, pipe_->inputs()});
    batch->inputs = dense_.data();
    batch->sparse = SparseRows();
  }

  // Whether there is a row; waits for one.
  bool HasRows() {
    constexpr milliseconds kSlice{50};
    if (next_row_ < window_.rows) return true;
    if (ended_) return false;
    const TimePoint begun = Clock::now();
    std::optional<RowWindow> window = pipe_->Take(milliseconds(0));
    while (!window && (!attend_ || attend_())) window = pipe_->Take(kSlice);
    waited_nanos_ += std::chrono::nanoseconds(Clock::now() - begun).count();
    if (!window) return false;  // the worker leaves
    window_ = std::move(*window);
    next_row_ = 0;
    ended_ = window_.rows == 0;
    return !ended_;
  }

  const std::shared_ptr<Pipe> pipe_;
  const int64_t step_rows_;
  const bool drop_short_;
  const bool sparse_;          // batches have sparse rows as they are
  const SkippedRows in_head_;  // which the set has told
  std::function<bool()> attend_;
  DataPlan plan_;
  RowWindow window_;
  std::vector<int64_t> offsets_;  // of the batch, where rows are sparse
  std::vector<float> dense_;      // its features, where the model takes all of them
  int64_t next_row_ = 0;
  int64_t steps_ = 0;
  bool ended_ = false;
  int64_t waited_nanos_ = 0;
};

// Fits the scale and the weights of classes on the rows of the head behind those held out.
void Fit(const Config& config, const LabelRules& rules, RowWindow* held_out, RowWindow* head, InputForm* form,
         Pipe* pipe) {
  const FeatureScale kind = config.data.scale;
  if (kind != FeatureScale::kNone && HasSparseRows(config.data)) {
    if (form->scale.empty()) form->scale = FitNumbers(config, *head);
  } else if (kind != FeatureScale::kNone) {
    const gpu::MatrixView<float> rows(head->features.data(), head->rows, pipe->inputs());
    if (form->scale.empty()) form->scale = WithoutFlags(FitScale(kind, rows), form->columns);
    ApplyScale(form->scale, rows);
    ApplyScale(form->scale, {held_out->features.data(), held_out->rows, pipe->inputs()});
    pipe->UseScale(form->scale);
  }
  if (!rules.classes) return;
  pipe->UseClassWeights(
      ClassWeightsOf(config.data, *form, *rules.classes, [&] { return WeightsOf(*head, *rules.classes); }));
}

// The rows that are held out, as a set without end.
DataSet HeldOutSet(RowWindow rows, int64_t inputs, std::optional<int64_t> classes, bool sparse,
                   std::shared_ptr<const PassFacts> facts) {
  OwnColumns columns{{},
                     std::move(rows.classes),
                     std::move(rows.targets),
                     std::move(rows.weights),
                     std::move(rows.row_offsets)};
  std::shared_ptr<Fetch> fetch;
  if (sparse) {
    const auto features = std::make_shared<CsrRows>(inputs);
    features->Append(rows.sparse);
    fetch = features;
  } else {
    fetch = FetchOf(std::move(rows.features), rows.rows, inputs);
  }
  SetForm form{inputs, classes};
  form.sparse = sparse;
  form.facts = std::move(facts);
  return {form, std::move(fetch), Keep(std::move(columns))};
}

}  // namespace

PipedSet OpenPipe(const Config& config, const LabelRules& rules, SourceInputs* inputs, InputForm* form) {
  auto pipe = std::make_shared<Pipe>(config, rules, inputs, form->columns);
  const int64_t held_out = config.data.validation;
  RowWindow head = pipe->ReadHead(held_out + pipe->window());
  if (head.rows <= held_out) {
    throw UserError("{}: has {} rows, and data.validation = {} holds out all of them. Hold out fewer.",
                    config.data.train.path[0], head.rows, held_out);
  }
  form->classes = pipe->names();
  const std::vector<uint32_t> rows = Numbers(head.rows);
  RowWindow first = Chosen(head, {rows.data(), held_out}, pipe->inputs());
  head = Chosen(head, {rows.data() + held_out, head.rows - held_out}, pipe->inputs());
  Fit(config, rules, &first, &head, form, pipe.get());
  pipe->GiveBack(std::move(head));
  PipedSet piped{HeldOutSet(std::move(first), pipe->inputs(), rules.classes, HasSparseRows(config.data),
                            FactsOf(pipe->names(), pipe->Skipped())),
                 pipe->columns()};
  piped.set.UseStream([pipe](const Config& of_run, int worker, int workers) mutable {
    DT_CHECK(pipe != nullptr);
    if (of_run.data.split != Split::kFull) pipe->TakeTurns(worker, workers);
    return std::make_unique<PipeBatches>(of_run, std::exchange(pipe, nullptr));
  });
  return piped;
}

}  // namespace dtrain
