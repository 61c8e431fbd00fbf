// ReadAllRows() (pass.h). A plain file is parsed by several threads: it is cut into parts where lines end, or
// where a length of TFRecord and its checksum stand; each is parsed by a reader of its own, and they are
// joined in order. Rows, labels, what is left out and errors are those of one thread, whatever the number: a
// part counts only if the part before has ended where it begins, and not inside of quotes, and if nothing
// depends on what came before it. Any other is read again by the pass itself. Packed files and pipes are read
// by the pass.
#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/tfrecord.h"
#include "trainer/input/input_bytes.h"
#include "trainer/rows/pass.h"

namespace dtrain {
namespace {

// A reader's buffer has room for a part and the rest of its last line.
constexpr int64_t kPartBytes = (1 << 20) - (1 << 16);

// Part: what one thread has parsed of a file, from a line's begin on.
struct Part {
  int64_t begin = 0;  // in the file
  int64_t end = 0;    // rows that begin behind it are the next part's
  bool is_parsed = false;
  bool has_failed = false;
  TextMark stop;  // behind its last row, with lines counted from its begin
  int64_t count = 0;
  ParsedRows rows;
  std::optional<RowLabels> labels;
  SkippedRows skipped;
};

// PartReaders: threads that parse the parts of the file that a pass is at. Owner and thread: ReadAllRows();
// what the threads share is guarded.
class PartReaders {
 public:
  // `labels`: of the rows before.
  PartReaders(const Pass& pass, const RowLabels& labels, int64_t threads)
      : pass_(pass),
        number_(pass.file()),
        labels_(labels.Continued()),
        file_(pass.rows().path(), ""),
        end_(pass.rows().content_bytes()),
        next_(pass.rows().mark().byte),
        parts_(static_cast<size_t>(2 * threads)) {
    try {
      for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
    } catch (const std::system_error&) {  // the system has no more: those that there are parse all
      if (threads_.empty()) next_ = end_;
    }
  }
  ~PartReaders() {
    Change([this] { next_ = end_; });
    for (std::thread& thread : threads_) thread.join();
  }

  // Waits for the next part, in order. Null: the last one was taken. It is valid until the next call.
  Part* Take() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (taken_ > 0) At(taken_ - 1).is_parsed = false;
    released_ = taken_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return taken_ < claimed_ ? At(taken_).is_parsed : next_ >= end_; });
    return taken_ < claimed_ ? &At(taken_++) : nullptr;
  }

 private:
  void Run() {
    std::unique_ptr<RowFile> file;
    SkippedRows skipped;
    while (Part* const part = Claim()) {
      try {
        if (file == nullptr) file = pass_.OpenAgain(number_, &skipped);
        skipped = SkippedRows();
        Parse(file.get(), part);
        part->skipped = skipped;
      } catch (...) {  // the pass meets it too, and tells it
        part->has_failed = true;
        file.reset();
      }
      Change([part] { part->is_parsed = true; });
    }
  }

  void Parse(RowFile* file, Part* part) const {
    file->GoTo({part->begin, 1}, part->end - part->begin);
    while (file->mark().byte < part->end && file->Next(&part->rows, &*part->labels)) ++part->count;
    part->stop = file->mark();
  }

  // Returns the next part to parse, or null.
  Part* Claim() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(
        lock, [this] { return next_ >= end_ || claimed_ - released_ < static_cast<int64_t>(parts_.size()); });
    if (next_ >= end_) return nullptr;
    Part& part = At(claimed_++);
    part.begin = next_;
    part.end = next_ = RowBehind(next_ + kPartBytes);
    part.has_failed = false;
    part.count = 0;
    part.rows.Clear();
    part.labels.emplace(labels_);
    return &part;
  }

  // Returns where the first line, or what looks like a record, begins behind `byte`. What is wrong with the
  // file is told by who reads it.
  int64_t RowBehind(int64_t byte) {
    constexpr int64_t kPiece = 1 << 14;
    const bool records = pass_.data().train.format == DataFormat::kTfrecord;
    const int64_t overlap = records ? static_cast<int64_t>(kTfrecordHead) - 1 : 0;
    std::string piece(kPiece, '\0');
    try {
      for (; byte < end_; byte += kPiece - overlap) {
        file_.SkipTo(byte);
        const auto got = static_cast<size_t>(file_.Read(piece.data(), kPiece));
        const size_t row = FindRow({piece.data(), got}, records);
        if (row != std::string_view::npos) return byte + static_cast<int64_t>(row);
      }
    } catch (const UserError&) {
    }
    return end_;
  }

  static size_t FindRow(std::string_view text, bool records) {
    if (!records) {
      const size_t feed = text.find('\n');
      return feed == text.npos ? feed : feed + 1;
    }
    for (size_t at = 0; at + kTfrecordHead <= text.size(); ++at) {
      if (BeginsTfrecord(text.substr(at, kTfrecordHead))) return at;
    }
    return text.npos;
  }

  template <typename Action>
  void Change(Action&& action) {
    const std::lock_guard<std::mutex> lock(mutex_);
    action();
    changed_.notify_all();
  }
  Part& At(int64_t number) { return parts_[static_cast<size_t>(number) % parts_.size()]; }

  const Pass& pass_;
  const size_t number_;     // of the file
  const RowLabels labels_;  // none, by what is known
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  InputBytes file_;  // in which lines are looked for
  const int64_t end_;
  int64_t next_;             // where the next part begins
  std::vector<Part> parts_;  // in turn; those that are claimed belong to their threads
  int64_t claimed_ = 0;      // parts so far
  int64_t taken_ = 0;
  int64_t released_ = 0;
};

// AllRows: what ReadAllRows() does.
class AllRows {
 public:
  AllRows(Pass* pass, RowLabels* labels, const std::function<void(const ParsedRows&)>& take)
      : pass_(*pass), labels_(*labels), take_(take), threads_(ThreadsOf(pass->data())) {}

  // The first row of each file is read here: it decides what labels are, and its faults have other remedies.
  void Read() {
    std::optional<size_t> cut;  // the file that was read in parts
    while (pass_.Next(&rows_, &labels_)) {
      if (cut != pass_.file() && labels_.is_decided()) {
        cut = pass_.file();
        ReadParts();
      }
      if (rows_.feature_bytes() >= kPartBytes) Give();
    }
    Give();
  }

 private:
  static int64_t ThreadsOf(const DataConfig& data) {
    constexpr int64_t kMax = 64;  // more parse faster than one thread joins
    return std::min(data.threads == kAutoThreads ? Processors() : data.threads, kMax);
  }

  void Give() {
    take_(rows_);
    rows_.Clear();
  }

  void ReadParts() {
    const int64_t left = pass_.rows().content_bytes() - pass_.rows().mark().byte;
    if (threads_ < 2 || left < 2 * kPartBytes || !pass_.rows().CanSeek()) return;
    const size_t file = pass_.file();
    PartReaders readers(pass_, labels_, std::min(threads_, left / kPartBytes));
    while (Part* const part = readers.Take()) {
      if (Join(part)) continue;
      while (pass_.rows().mark().byte < part->end && pass_.Next(&rows_, &labels_)) {
        if (pass_.file() != file) return;  // behind the last row are no others
        if (rows_.feature_bytes() >= kPartBytes) Give();
      }
    }
  }

  // False: the part must be read again.
  bool Join(Part* part) {
    const TextMark mark = pass_.rows().mark();
    if (part->has_failed || part->begin != mark.byte || !AreTold(part->skipped)) return false;
    if (!labels_.Append(*part->labels)) return false;
    Give();
    pass_.StepOver(part->count, {part->stop.byte, mark.line + part->stop.line - 1}, part->skipped);
    take_(part->rows);
    return true;
  }

  // Whether all is told that there is to tell of rows that cannot be read.
  bool AreTold(const SkippedRows& skipped) const {
    const SkippedRows& before = pass_.skipped();
    if (!skipped.headers.empty()) return false;
    return skipped.bad == 0 || (before.faults.size() == SkippedRows::kToldFaults &&
                                before.bad + skipped.bad <= pass_.data().bad_rows_limit);
  }

  Pass& pass_;
  RowLabels& labels_;
  const std::function<void(const ParsedRows&)>& take_;
  const int64_t threads_;
  ParsedRows rows_;  // that the pass has read
};

}  // namespace

void ReadAllRows(Pass* pass, RowLabels* labels, const std::function<void(const ParsedRows&)>& take) {
  AllRows(pass, labels, take).Read();
}

}  // namespace dtrain
