#include "cmd/models/models.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/names.h"

#include "cmd/models/checkpoint_model.h"
#include "cmd/models/evaluation.h"
#include "cmd/models/output_text.h"
#include "cmd/models/trained_model.h"
#include "cmd/models/why.h"

#include "trainer/config/config.h"
#include "trainer/export/output_file.h"
#include "trainer/input/csv_reader.h"
#include "trainer/input/sources.h"
#include "trainer/metrics/metrics.h"
#include "trainer/result/verdict.h"
#include "trainer/rows/row_reader.h"
#include "trainer/survey/data_warnings.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// The most rows that are computed together, if they are there already.
constexpr int64_t kMaxRows = 256;
// The most values that are held: rows with very many features are computed one by one.
constexpr int64_t kMaxValues = 1 << 22;

// Output: the destination of predictions: a file that appears when it is complete, or standard output, row by
// row.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (!path.empty()) {
      file_.emplace(path);
    } else {
      // The reader has closed the pipe (`| head`), so the rest need not be computed.
      signal(SIGPIPE, SIG_DFL);
    }
  }
  void Write(const std::string& text) {
    if (file_) return file_->Write(text.data(), text.size());
    if (const int failed = WriteAll(STDOUT_FILENO, text)) throw OutputFailed(failed);
  }
  void Finish() {
    if (file_) file_->Finish();
  }

 private:
  std::optional<OutputFile> file_;
};

class Predictor {
 public:
  Predictor(const Config& config, const Layout& layout, CheckpointReader* checkpoint, const InputForm& form,
            const PredictArguments& arguments, const ErrorLines& errors)
      : config_(config),
        spec_(SpecFor(config, form, arguments.keep, arguments.why > 0 ? &all_names_ : nullptr)),
        skip_bad_(arguments.skip_bad),
        raw_(arguments.raw),
        threshold_(arguments.threshold),
        reasons_(arguments.why),
        errors_(errors),
        max_rows_(layout.table ? kMaxRows : std::clamp<int64_t>(kMaxValues / spec_.inputs, 1, kMaxRows)),
        model_(DeviceChoice(), config, layout, form.scale, max_rows_, checkpoint),
        block_(spec_.inputs, spec_.keep.size()) {}

  void Run(const std::vector<std::string>& files, const std::string& format, Output* output) {
    for (const std::string& path : files) {
      RowReader rows(path, spec_);
      if (!text_) Begin(format, rows, output);
      number_names_ = rows.NumberNames();
      while (PredictNext(&rows, output)) continue;
      told_.Add(rows.skipped());
    }
    errors_.Print(SkippedText("--data", told_), LogLevel::kWarning);
    if (skipped_ > 0) {
      errors_.Print(fmt::format("{} could not be read and {} left out", Plural(skipped_, "row"),
                                skipped_ == 1 ? "is" : "are"));
    }
  }

  int64_t rows() const { return rows_; }

  // Returns a warning about what is likely a mistake; empty if there is none.
  std::string Warning() const {
    constexpr float kOne = 1.0f / 255;
    if (!spec_.pixels || max_feature_ <= 0 || max_feature_ > kOne) return "";
    return "no value was above 1, and the model was trained on images of bytes, 0 to 255: multiply values of "
           "0 to 1 by 255";
  }

 private:
  static RowSpec SpecFor(const Config& config, const InputForm& form, const std::vector<std::string>& keep,
                         const NameWish* names) {
    RowSpec spec = RowSpecFor(config, form, config.data.train);
    spec.keep = keep;
    spec.names = names;
    return spec;
  }

  void Begin(const std::string& asked, const RowReader& rows, Output* output) {
    const bool lines = asked.empty() ? rows.is_json() : asked == "jsonl";
    text_.emplace(lines ? PredictionFormat::kJsonLines : PredictionFormat::kCsv, config_.model, raw_,
                  spec_.form.classes, rows.KeptNames(), threshold_);
    std::string header = text_->Header();
    if (reasons_ > 0) {
      why_text_.emplace(lines ? PredictionFormat::kJsonLines : PredictionFormat::kCsv, reasons_,
                        !config_.data.offset.empty(), rows.KeptNames());
      why_text_->AddToHeader(&header);
    }
    if (!header.empty()) output->Write(header);
  }

  // Predicts the next rows: all that are there, but at least one. Returns false at the end. If a row cannot
  // be read, the rows before it are answered.
  bool PredictNext(RowReader* rows, Output* output) {
    block_.Clear();
    bool more = true;
    try {
      do {
        more = ReadRow(rows);
      } while (more && block_.rows < max_rows_ && rows->HasMore());
    } catch (const UserError&) {
      block_.DropUnfinished();
      WriteRows(output);
      throw;
    }
    WriteRows(output);
    return more;
  }

  // Reads the next row, or leaves it out if it cannot be read and --skip-bad allows that.
  bool ReadRow(RowReader* rows) {
    try {
      return rows->Next(&block_);
    } catch (const RowFault& fault) {
      if (skip_bad_ == 0) throw UserError("{} --skip-bad N leaves up to N such rows out.", fault.what());
      if (skipped_ == skip_bad_) {
        throw UserError("{} It is bad row {}, and --skip-bad is {}.", fault.what(), skipped_ + 1, skip_bad_);
      }
      ++skipped_;
      block_.DropUnfinished();
      errors_.Print(fmt::format("left out: {}", fault.what()));
      rows->SkipFault();
      return true;
    }
  }

  void WriteRows(Output* output) {
    if (block_.rows == 0) return;
    if (spec_.pixels) {
      for (const float value : block_.features) max_feature_ = std::max(max_feature_, value);
      if (!block_.bytes.empty()) max_feature_ = 1;  // images have values in [0, 1]
    }
    const gpu::MatrixView<const float> outputs = model_.Outputs(block_.AsBatch());
    std::string answer;
    for (int64_t row = 0; row < block_.rows; ++row) {
      answer += text_->Row(outputs.row(row), block_.ids[static_cast<size_t>(row)],
                           block_.kept.data() + static_cast<size_t>(row) * block_.keeps);
      if (reasons_ > 0) why_text_->AddToRow(WhyOf(row, outputs.row(row)), &answer);
    }
    output->Write(answer);
    rows_ += block_.rows;
  }

  // A softmax is explained for the predicted class.
  Why WhyOf(int64_t row, const float* outputs) {
    const int64_t output =
        HasOutputPerClass(config_.model) ? PredictedClass(outputs, *config_.model.outputs, threshold_) : 0;
    model_.Explain(row, output, &shares_);
    return FindReasons({config_, spec_.form, model_.form(), block_, number_names_}, row, shares_,
                       static_cast<double>(outputs[output]), reasons_);
  }

  const Config& config_;
  const NameWish all_names_{true, {}};
  const RowSpec spec_;
  const int64_t skip_bad_;
  const bool raw_;
  const std::optional<double> threshold_;
  const int64_t reasons_;  // of each row; 0: none are asked for
  const ErrorLines& errors_;
  int64_t skipped_ = 0;
  SkippedRows told_;
  int64_t rows_ = 0;  // that were predicted
  const int64_t max_rows_;
  TrainedModel model_;
  RowBlock block_;
  std::optional<PredictionText> text_;
  std::optional<WhyText> why_text_;
  std::vector<std::string> number_names_;
  RowShares shares_;
  float max_feature_ = 0;  // the largest feature of an image so far, as scaled for the model
};

// Refuses an output that would overwrite one of the input files, under any name.
void CheckOut(const std::vector<std::string>& files, const std::string& out) {
  if (out.empty()) return;
  for (const std::string& file : files) {
    if (IsCommand(file)) continue;
    std::error_code ignored;  // a file that does not exist is another file
    if (!std::filesystem::equivalent(file == "-" ? "/dev/stdin" : file, out, ignored)) continue;
    throw UserError("--out {}: is the same file as --data {}, and would replace it. Name another file.", out,
                    file);
  }
}

}  // namespace

int RunPredictCommand(const PredictArguments& arguments, const ErrorLines& errors) {
  return WithModel(
      arguments.checkpoint, arguments.config, errors,
      [&](CheckpointReader* checkpoint, const Config& config) {
        CheckThreshold(arguments.threshold, config.model);
        const Layout layout = LayoutFor(*checkpoint, config);
        PrepareProcess(config);
        Predictor predictor(config, layout, checkpoint, FormFor(*checkpoint, config), arguments, errors);
        const std::vector<std::string> files = SourceFiles(arguments.data, "--data");
        CheckOut(files, arguments.out);
        Output output(arguments.out);
        const TimePoint begun = Clock::now();
        predictor.Run(files, arguments.format, &output);
        output.Finish();
        const double seconds = std::max(SecondsSince(begun), 1e-3);
        errors.Print(
            fmt::format("predicted {} in {:.2f} s, {:.0f} rows/s: {}", Plural(predictor.rows(), "row"),
                        seconds, static_cast<double>(predictor.rows()) / seconds,
                        arguments.out.empty() ? "standard output" : arguments.out),
            LogLevel::kInfo);
        errors.Print(ClassWeightsLine(config.data), LogLevel::kInfo);
        const std::string warning = predictor.Warning();
        if (!warning.empty()) errors.Print("warning: " + warning);
      });
}

}  // namespace dtrain
