#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"

#include "cmd/tables/tables.h"
#include "trainer/synth/synth_table.h"

namespace dtrain {
namespace {

constexpr size_t kWriteBytes = 1 << 20;
constexpr int64_t kRowsAtOnce = 64;

// Output: the file of --out, or standard output. Whoever reads a pipe may stop at any row: `head` is no
// failure.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {
    if (path.empty()) return;
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) ThrowUnwritable("--out " + UnwritableText(path, errno), errno);
  }
  ~Output() {
    if (fd_ != STDOUT_FILENO) close(fd_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Returns false if nobody reads any more.
  bool Write(std::string_view bytes) {
    const int failure = WriteAll(fd_, bytes);
    if (failure == EPIPE) return false;
    if (failure == 0) return true;
    struct stat made {};
    if (!path_.empty() && fstat(fd_, &made) == 0 && S_ISREG(made.st_mode)) unlink(path_.c_str());
    if (path_.empty()) throw OutputFailed(failure);
    throw FileError("--out " + UnwritableText(path_, failure), failure);
  }

 private:
  const std::string path_;  // empty: standard output
  int fd_ = STDOUT_FILENO;
};

std::unique_ptr<SynthTable> NewTable(const SynthArguments& arguments) {
  if (arguments.name == "linear") return NewLinearTable(arguments.seed, arguments.features);
  if (arguments.name == "digits") return NewDigitsTable(arguments.seed);
  if (arguments.tfrecord) return NewCriteoRecords(arguments.seed);
  if (arguments.name == "criteo") return NewCriteoTable(arguments.seed, arguments.header);
  const SparseForm form = arguments.name == "vw" ? SparseForm::kVw : SparseForm::kLibsvm;
  return NewSparseTable(arguments.seed, form, arguments.features, arguments.width);
}

}  // namespace

int RunSynthCommand(const SynthArguments& arguments) {
  const std::unique_ptr<SynthTable> table = NewTable(arguments);
  if (arguments.truth) table->KeepTruth();
  Output output(arguments.out);
  std::string text = table->Header();
  text.reserve(2 * kWriteBytes);
  const int64_t end = arguments.first + arguments.rows;
  for (int64_t row = arguments.first; row < end; row += kRowsAtOnce) {
    table->Append(row, std::min(row + kRowsAtOnce, end), &text);
    if (text.size() < kWriteBytes) continue;
    if (!output.Write(text)) return 0;
    text.clear();
  }
  if (!output.Write(text)) return 0;
  const std::string truth = table->Truth();
  if (!truth.empty()) fmt::print(stderr, "{}\n", truth);
  return 0;
}

}  // namespace dtrain
