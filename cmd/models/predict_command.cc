#include "cmd/models/models.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"

#include "cmd/models/checkpoint_model.h"
#include "cmd/models/output_text.h"

#include "trainer/data/rows/open_rows.h"
#include "trainer/export/output_file.h"
#include "trainer/model/dense_model.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// Rows that are computed together where they need not be waited for.
constexpr int64_t kMaxRows = 256;
// Inputs that are held: rows of very many features are computed one by one.
constexpr int64_t kMaxValues = 1 << 22;

// Where predictions go: a file that is there when it is complete, or standard output at once.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (!path.empty()) {
      file_.emplace(path);
    } else {
      // Whoever reads has had enough (`| head`): what is left to answer is for nobody.
      signal(SIGPIPE, SIG_DFL);
    }
  }
  void Write(const std::string& text) {
    if (file_) return file_->Write(text.data(), text.size());
    if (const int failed = WriteAll(STDOUT_FILENO, text)) {
      throw IoError("standard output: {}", ErrnoText(failed));
    }
  }
  void Finish() {
    if (file_) file_->Finish();
  }

 private:
  std::optional<OutputFile> file_;
};

class Predictor {
 public:
  Predictor(const Config& config, const Layout& layout, std::vector<float> weights, const InputForm& form)
      : config_(config),
        spec_(RowSpecFor(config, form)),
        max_rows_(std::clamp<int64_t>(kMaxValues / spec_.inputs, 1, kMaxRows)),
        weights_(std::move(weights)),
        model_(config.model, layout, max_rows_),
        block_(spec_.inputs) {}

  void Run(const std::vector<std::string>& files, const std::string& format, Output* output) {
    for (const std::string& path : files) {
      const std::unique_ptr<RowReader> rows = OpenRows(path, spec_);
      if (!text_) Begin(format, rows->format(), output);
      while (Answer(rows.get(), output)) continue;
    }
  }

  // What is no error and yet likely a mistake; empty: nothing.
  std::string Warning() const {
    constexpr float kOne = 1.0f / 255;
    if (!spec_.pixels || brightest_ <= 0 || brightest_ > kOne) return "";
    return "no value was above 1, and the model was trained on images of bytes, 0 to 255: multiply values of "
           "0 "
           "to 1 by 255";
  }

 private:
  void Begin(const std::string& asked, RowFormat input, Output* output) {
    const bool lines = asked.empty() ? input == RowFormat::kJsonLines : asked == "jsonl";
    text_.emplace(lines ? PredictionFormat::kJsonLines : PredictionFormat::kCsv, config_.model,
                  spec_.form.classes);
    if (const std::string header = text_->Header(); !header.empty()) output->Write(header);
  }

  // The next rows: as many as are there, but at least one. False at the end. Those before a row that
  // cannot be read are answered.
  bool Answer(RowReader* rows, Output* output) {
    block_.Clear();
    bool more = true;
    try {
      do {
        more = rows->Next(&block_);
      } while (more && block_.rows < max_rows_ && rows->HasMore());
    } catch (const UserError&) {
      block_.DropUnfinished();
      WriteRows(output);
      throw;
    }
    WriteRows(output);
    return more;
  }

  void WriteRows(Output* output) {
    if (block_.rows == 0) return;
    if (spec_.pixels) {
      for (const float value : block_.floats) brightest_ = std::max(brightest_, value);
      if (!block_.bytes.empty()) brightest_ = 1;  // as images have them
    }
    const gpu::MatrixView<const float> outputs = model_.Outputs(weights_.data(), block_.AsBatch());
    std::string answer;
    for (int64_t row = 0; row < block_.rows; ++row) {
      answer += text_->Row(outputs.row(row), block_.ids[static_cast<size_t>(row)]);
    }
    output->Write(answer);
  }

  const Config& config_;
  const RowSpec spec_;
  const int64_t max_rows_;
  const std::vector<float> weights_;
  DenseModel model_;
  RowBlock block_;
  std::optional<PredictionText> text_;
  float brightest_ = 0;  // the largest feature of an image so far, as the model takes it
};

// Refuses to put the answers in the place of their own rows, by whatever name.
void CheckOut(const std::vector<std::string>& files, const std::string& out) {
  if (out.empty()) return;
  for (const std::string& file : files) {
    std::error_code ignored;  // what is not there is not the same
    if (!std::filesystem::equivalent(file == "-" ? "/dev/stdin" : file, out, ignored)) continue;
    throw UserError("--out {}: is the same file as --data {}, and would replace it. Name another file.", out,
                    file);
  }
}

}  // namespace

int RunPredictCommand(const PredictArguments& arguments, const ErrorLines& errors) {
  return WithModel(arguments.path, arguments.config, errors,
                   [&](CheckpointReader* checkpoint, const Config& config) {
                     const Layout layout = LayoutFor(*checkpoint, config);
                     PrepareProcess(config);
                     Predictor predictor(config, layout, ReadWeights(layout, checkpoint, nullptr),
                                         FormFor(*checkpoint, config));
                     const std::vector<std::string> files = FilesOf(arguments.data, "--data");
                     CheckOut(files, arguments.out);
                     Output output(arguments.out);
                     predictor.Run(files, arguments.format, &output);
                     output.Finish();
                     const std::string warning = predictor.Warning();
                     if (!warning.empty()) errors.Print("warning: " + warning);
                   });
}

}  // namespace dtrain
