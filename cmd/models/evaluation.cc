#include "cmd/models/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/tfrecord.h"

#include "cmd/models/checkpoint_model.h"
#include "cmd/models/trained_model.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/sources.h"
#include "trainer/order/held_out.h"
#include "trainer/result/verdict.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/row_reader.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_warnings.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {
namespace {

constexpr char kNoSet[] =
    "there is nothing to evaluate on (no data.test). Set data.test or data.validation, or name a file with "
    "--data.";

std::string LabelsBeside(const std::string& images) {
  const std::string there = "images-idx3", here = "labels-idx1";
  const size_t at = images.rfind(there);
  if (at != std::string::npos) return std::string(images).replace(at, there.size(), here);
  throw UserError(
      "--data {}: where are its labels? Name the files as MNIST does (t10k-images-idx3-ubyte and "
      "t10k-labels-idx1-ubyte), or set data.test.images and data.test.labels.",
      images);
}

// The rows of the files that eval.on names.
struct RowSet {
  const DataSourceConfig& source;
  std::string key;
  int64_t max = 0;  // rows
};

RowSet RowsOf(const Config& config, const std::string& key_of_test) {
  if (config.eval.on == EvalOn::kValidation) {
    const int64_t max = config.data.validation_share > 0 ? INT64_MAX : config.data.validation;
    return {config.data.train, "data.train", max};
  }
  return {config.data.test, key_of_test, INT64_MAX};
}

// Returns the files or the pipe of a set. Throws UserError for a pipe that a checkpoint's config names.
std::vector<std::string> FilesOf(const RowSet& set) {
  const bool idx = set.source.format == DataFormat::kIdx;
  const std::vector<std::string>& paths = idx ? set.source.images : set.source.path;
  if (paths[0] != kNotTaken) return SourceFiles(paths, set.key);
  throw UserError(
      "{0}.path: is standard input or a command (exec:) in the checkpoint's config, and only you can name "
      "one. Name the rows: --data FILE, or --set {0}.path=...",
      set.key);
}

// Rows are left out as in a run.
RowSpec LabelledSpec(const Config& config, const InputForm& form, const RowSet& set) {
  RowSpec spec = RowSpecFor(config, form, set.source);
  const bool csv = IsTable(set.source.format);
  spec.data.bad_rows = config.data.bad_rows;
  spec.data.missing = config.data.missing;
  spec.format = csv ? RowFormat::kCsv : RowFormat::kIdx;
  if (csv) spec.header = set.source.header;
  spec.labels = LabelRulesOf(config);
  spec.key = set.key;
  return spec;
}

// GroupNumbers: the group of each row, numbered as they come.
class GroupNumbers {
 public:
  // Adds the rows whose texts these are.
  void Add(const std::vector<KeptField>& texts) {
    for (const KeptField& field : texts) {
      const auto [found, is_new] = numbers_.try_emplace(field.text, static_cast<uint32_t>(names_.size()));
      if (is_new) names_.push_back(field.text);
      if (names_.size() > GroupFigures::kMax) {
        throw UserError(
            "--by: the column has more than {} different texts (row {}), and each is a group. Name a column "
            "with "
            "fewer.",
            GroupFigures::kMax, of_row_.size() + 1);
      }
      of_row_.push_back(found->second);
    }
  }
  GroupFigures Rank(const std::string& column, const ScoreTable& scores) && {
    std::vector<GroupRanking> groups = scores.RankGroups(of_row_, names_.size());
    if (groups.empty()) names_.clear();  // scores.why_none() says why
    return {column, std::move(names_), std::move(groups)};
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
  std::vector<uint32_t> of_row_;
};

// Refuses --by where there are no two classes, or no columns.
void CheckBy(const std::string& by, const Config& config, const RowSet& set, bool reads_rows) {
  const auto refuse = [&](const std::string& why) { throw UserError("--by {}: {}", Shown(by), why); };
  if (!HasClasses(config.model) || ClassCount(*config.model.outputs) != 2) {
    refuse("is for a model of two classes, and this one is none. Leave it out.");
  }
  if (!IsTable(set.source.format))
    refuse(fmt::format("rows of {} have no columns with names. Leave it out.", set.key));
  if (!reads_rows)
    refuse("with data.validation as a share its rows are numbers alone. Name a file with --data.");
}

// SetSum: the evaluation of a set, a batch after the other. Calls `between_batches`, which may throw, after
// each.
class SetSum {
 public:
  SetSum(TrainedModel* model, EvaluationOutcome* outcome, const std::function<void()>& between_batches)
      : model_(*model), outcome_(*outcome), between_batches_(between_batches) {}

  void Add(const Batch& batch) {
    model_.Evaluate(batch, &outcome_.figures, &outcome_.evaluation);
    between_batches_();
  }
  int64_t rows() const { return outcome_.evaluation.rows; }

 private:
  TrainedModel& model_;
  EvaluationOutcome& outcome_;
  const std::function<void()>& between_batches_;
};

// Batches are those of a run, which may have rows of several files. Returns which rows were left out.
SkippedRows AddRows(const RowSet& set, const RowSpec& spec, int64_t batch_rows, SetSum* sum,
                    GroupNumbers* groups) {
  const bool idx = set.source.format == DataFormat::kIdx;
  int64_t left = set.max;
  RowBlock block(spec.inputs, spec.keep.size());
  const auto add = [&] {
    if (block.rows > 0) sum->Add(block.AsBatch());
    groups->Add(block.kept);
    block.Clear();
  };
  const IdxFiles files =
      idx ? FindIdxFiles(set.source.images, set.source.labels, set.key) : IdxFiles{FilesOf(set), {}};
  SkippedRows skipped;
  for (size_t i = 0; i < files.images.size(); ++i) {
    RowReader rows(files.images[i], spec, idx ? files.labels[i] : "");
    while (left > 0 && rows.Next(&block)) {
      --left;
      if (block.rows == batch_rows) add();
    }
    skipped.Add(rows.skipped());
  }
  add();
  if (sum->rows() == 0) throw UserError("{}: no rows in it. Name a set with rows.", set.key);
  return skipped;
}

bool IsFiles(DataFormat format) { return format == DataFormat::kIdx || IsText(format); }

// Returns an upper bound of the number of rows: a field of CSV, or a row of sparse features, ends with a
// byte, and a record of TFRecord has 16 beside its fields.
int64_t MaxRowsOf(const std::string& file, const RowSet& set, int64_t fields) {
  if (IsPipe(file)) return INT64_MAX;
  if (set.source.format == DataFormat::kIdx) return PeekIdxImages(file, set.key).count;
  InputBytes bytes(file, set.key);
  if (set.source.format == DataFormat::kTfrecord) bytes.BeginsRecords(true);
  const auto row_bytes = std::min<int64_t>(fields, kTfrecordHead + kTfrecordTail);
  return bytes.compressed() ? INT64_MAX : static_cast<int64_t>(bytes.file_size()) / row_bytes + 1;
}

// Returns the rows of the largest batch of one device that is read from files, for which memory is allocated.
int64_t MaxRowsOfBatch(const RowSet& set, const Config& config, const InputForm& form) {
  const int64_t fields = HasSparseRows(config.data) ? 1 : ColumnCount(form, *config.model.inputs);
  int64_t max = 0;
  for (const std::string& file : FilesOf(set)) {
    const int64_t rows = MaxRowsOf(file, set, fields);
    max = rows < INT64_MAX - max ? max + rows : INT64_MAX;
  }
  return std::min({config.train.batch_size, set.max, max});
}

std::vector<std::string> LinesOf(const EvaluationOutcome& outcome, const DataConfig& data) {
  std::vector<std::string> lines =
      VerdictLines(SetName(outcome.set), outcome.reported, outcome.figures.threshold);
  const auto add = [&](const std::string& line) {
    if (!line.empty()) lines.push_back(line);
  };
  add(ClassWeightsLine(data));
  const Evaluation& evaluation = outcome.evaluation;
  if (evaluation.classifies && evaluation.weight != static_cast<double>(evaluation.rows)) {
    add("the figures weigh each row by data.weight; the tables of classes count it once");
  }
  if (outcome.groups && !outcome.groups->groups.empty()) {
    const GroupFigures& groups = *outcome.groups;
    add(fmt::format("AUC by {}: {}, the mean by weight of {}; {} of one class {} none", Shown(groups.column),
                    groups.auc() ? fmt::format("{:.4f}", *groups.auc()) : "none",
                    Plural(static_cast<int64_t>(groups.groups.size()) - groups.without(), "group"),
                    groups.without(), groups.without() == 1 ? "has" : "have"));
  }
  return lines;
}

}  // namespace

std::optional<double> GroupFigures::auc() const {
  double sum = 0, weight = 0;
  for (const GroupRanking& group : groups) {
    if (!group.auc) continue;
    sum += group.weight * *group.auc;
    weight += group.weight;
  }
  return weight > 0 ? std::optional(sum / weight) : std::nullopt;
}

int64_t GroupFigures::without() const {
  return std::count_if(groups.begin(), groups.end(), [](const GroupRanking& group) { return !group.auc; });
}

void EvaluateOn(const std::vector<std::string>& data, Config* config) {
  if (data.empty()) return;
  DataSourceConfig& test = config->data.test;
  if (test.format == DataFormat::kNone || !IsFiles(test.format)) test = config->data.train;
  if (!IsFiles(test.format)) {
    throw UserError(
        "--data {}: the data of this model are drawn (data.train.format = synthetic). Set data.test.",
        data[0]);
  }
  if (test.format == DataFormat::kIdx) {
    test.images = SourceFiles(data, "--data");
    test.labels.clear();
    for (const std::string& file : test.images) test.labels.push_back(LabelsBeside(file));
  } else {
    test.path = data;
  }
  config->eval.on = EvalOn::kTest;
}

void CheckThreshold(std::optional<double> threshold, const ModelConfig& model) {
  if (!threshold) return;
  const int64_t classes = HasClasses(model) ? ClassCount(*model.outputs) : 0;
  if (HasScores(model)) {
    throw UserError(
        "--threshold {:g}: is a probability, and a model with model.loss = {} has scores alone. Leave it "
        "out.",
        *threshold, gpu::LossRowOf(*model.loss).name);
  }
  if (classes == 2) return;
  throw UserError("--threshold {:g}: is for a model of two classes, and this one {}. Leave it out.",
                  *threshold, classes == 0 ? "has none" : fmt::format("has {}", classes));
}

EvaluationOutcome EvaluateCheckpoint(const Config& config, const DeviceChoice& devices,
                                     CheckpointReader* checkpoint,
                                     const std::function<void()>& between_batches,
                                     std::optional<double> threshold, const std::string& key,
                                     const std::string& by) {
  CheckThreshold(threshold, config.model);
  const Layout layout = LayoutFor(*checkpoint, config);
  PrepareProcess(config);
  const RowSet set = RowsOf(config, key);
  if (set.source.format == DataFormat::kNone || set.max == 0) throw UserError(kNoSet);
  EvaluationOutcome outcome{checkpoint->path(),
                            checkpoint->manifest().step,
                            "",
                            config.eval.on,
                            {},
                            Figures(*config.model.outputs, HasClasses(config.model), ScoreTable::kMaxScores,
                                    threshold, LossOf(config.model))};
  const bool files = IsFiles(set.source.format);
  const bool share = config.eval.on == EvalOn::kValidation && config.data.validation_share > 0;
  if (!by.empty()) CheckBy(by, config, set, files && !share);
  const InputForm form = files ? FormFor(*checkpoint, config) : InputForm();
  std::unique_ptr<BatchSource> source;
  SkippedRows skipped;
  int64_t max_rows = 0;
  if (!files || share) {  // drawn rows, or a share of a table, which must be read to its end for them
    CheckFits(DataNeed(EstimateDataSize(config), "dtrain eval, which reads the data,"));
    const LoadedData data = LoadData(config, files ? &form : nullptr);
    source = EvaluationSource(config.eval.on, config, data);
    if (source == nullptr) throw UserError(kNoSet);
    skipped = config.eval.on == EvalOn::kTest ? data.skipped_of_test : data.skipped;
    max_rows =
        MaxBatchRows(config, data.train->rows(), data.test == nullptr ? 0 : data.test->rows().value_or(0));
  } else {
    max_rows = MaxRowsOfBatch(set, config, form);
  }
  TrainedModel model(devices, config, layout, form.scale, max_rows, checkpoint);
  outcome.model_crc = model.model_crc();
  SetSum sum(&model, &outcome, between_batches);
  outcome.class_names = form.classes;
  if (source != nullptr) {
    for (Batch batch; source->Next(&batch);) sum.Add(batch);
  } else {
    // A file that has grown since has more rows than that.
    const bool all = max_rows < config.train.batch_size;
    const int64_t batch_rows = all ? max_rows : config.train.batch_size * config.device.towers();
    RowSpec spec = LabelledSpec(config, form, set);
    if (!by.empty()) spec.keep = {by};
    spec.keep_key = "--by";
    GroupNumbers groups;
    skipped = AddRows(set, spec, batch_rows, &sum, &groups);
    if (!by.empty()) outcome.groups = std::move(groups).Rank(by, outcome.figures.scores);
  }
  outcome.reported =
      ReportedFigures(outcome.evaluation, &outcome.figures, outcome.class_names, between_batches);
  outcome.lines = LinesOf(outcome, config.data);
  outcome.warning = SkippedText(set.key, skipped);
  return outcome;
}

}  // namespace dtrain
