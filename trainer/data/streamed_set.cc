#include "trainer/data/streamed_set.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"

namespace dtrain {
namespace {

// Of a block: enough to make a seek cheap, few enough that a window has rows of many places.
constexpr int64_t kMaxBlockRows = 1024;
constexpr int64_t kMaxBlockBytes = 1 << 20;

UserError ChangedError(const std::string& path) {
  return UserError(
      "{}: has changed since the start of this run. Start again when nobody writes to it; rows of a file "
      "that grows come by exec:tail -f.",
      path);
}

uint32_t Crc(uint32_t crc, const void* values, size_t bytes) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(values), bytes));
}

}  // namespace

StreamedSet::StreamedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how)
    : data_(data),
      rules_(rules),
      files_(data, how),
      labels_(rules, files_.path(0), ColumnTitle(files_.columns(), files_.columns().label)) {
  const auto row_bytes = static_cast<int64_t>(sizeof(float)) * std::max<int64_t>(1, files_.inputs());
  block_rows_ = std::clamp<int64_t>(kMaxBlockBytes / row_bytes, 1, kMaxBlockRows);
  Index();
  ahead_ = std::thread([this] { ReadAhead(); });
}

void StreamedSet::UseScale(const FittedScale& scale) {
  const std::lock_guard<std::mutex> lock(mutex_);
  scale_ = scale;
  kept_.clear();
}

StreamedSet::~StreamedSet() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  ahead_.join();
}

// Reads every row once: counts and checks it, and notes where blocks begin.
void StreamedSet::Index() {
  auto order = std::make_shared<std::vector<int64_t>>();
  std::vector<float> row;
  fingerprint_.labels = 0;
  for (size_t file = 0; file < files_.count(); ++file) {
    const std::unique_ptr<CsvReader> reader = files_.Open(file);
    const std::unique_ptr<TableRows> rows = files_.Rows(reader.get(), true, &skipped_);
    if (file > 0) labels_.NextFile(files_.path(file));
    const int64_t first_row = rows_;
    // Without a header the first row is read already.
    CsvMark begin = data_.train.header ? reader->mark() : reader->record_mark();
    while (rows->Next(&row, &labels_)) {
      if ((rows_ - first_row) % block_rows_ == 0) {
        if (reader->CanSeek() || rows_ == first_row) order->push_back(rows_);
        places_.push_back({rows_, file, begin, 0});
      }
      ++rows_;
      begin = reader->mark();
      places_.back().bytes = begin.byte - places_.back().begin.byte;
      row.clear();
      const bool classes = rules_.classes.has_value();
      fingerprint_.labels = classes ? Crc(fingerprint_.labels, labels_.classes().data(), sizeof(int32_t))
                                    : Crc(fingerprint_.labels, labels_.targets().data(), sizeof(float));
      labels_.Truncate(0);
    }
    if (rows_ == first_row) {
      throw CsvError(
          files_.path(file), reader->record_end(),
          "no rows after the header; data.train.path must name files with data. If the first line is "
          "data, set data.train.header to false.");
    }
  }
  labels_.Finish();
  fingerprint_.rows = rows_;
  order_blocks_ = std::move(order);
}

size_t StreamedSet::BlockOf(int64_t row) const {
  const auto behind = std::upper_bound(places_.begin(), places_.end(), row,
                                       [](int64_t r, const Place& place) { return r < place.first_row; });
  return static_cast<size_t>(behind - places_.begin()) - 1;
}

int64_t StreamedSet::EndOf(size_t block) const {
  return block + 1 < places_.size() ? places_[block + 1].first_row : rows_;
}

void StreamedSet::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
                         float* targets) const {
  const auto width = static_cast<size_t>(files_.inputs());
  std::shared_ptr<const ParsedRows> block;
  int64_t begin = 0, end = 0;  // of the block's rows
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] < begin || rows[i] >= end) {
      const size_t number = BlockOf(rows[i]);
      block = Acquire(number);
      begin = places_[number].first_row;
      end = EndOf(number);
    }
    const auto at = static_cast<size_t>(rows[i] - begin);
    if (inputs != nullptr) {
      std::copy_n(block->features.data() + at * width, width, inputs + static_cast<size_t>(i) * width);
    }
    if (rules_.classes.has_value()) {
      labels[i] = block->classes[at];
    } else {
      targets[i] = block->targets[at];
    }
  }
}

void StreamedSet::WillNeed(const std::vector<RowRun>& runs) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t blocks = 0;
  for (const RowRun& run : runs) {
    const size_t last = BlockOf(run.end - 1);
    for (size_t block = BlockOf(run.begin); block <= last; ++block, ++blocks) {
      if (kept_.count(block) == 0) wanted_.push_back(block);
    }
  }
  // Workers of one process share the set, and each has windows of its own.
  readers_.insert(std::this_thread::get_id());
  window_blocks_ = std::max(window_blocks_, blocks);
  changed_.notify_all();
}

// Returns a block, and reads it if nobody does.
std::shared_ptr<const ParsedRows> StreamedSet::Acquire(size_t number) const {
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<Block>& known = kept_[number];
  const bool is_new = known == nullptr;
  if (is_new) known = std::make_shared<Block>();
  const std::shared_ptr<Block> block = known;
  block->used = ++calls_;
  if (is_new) {
    lock.unlock();
    std::shared_ptr<const ParsedRows> rows;
    std::exception_ptr fault;
    try {
      rows = Read(number);
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    block->rows = std::move(rows);
    block->fault = fault;
    Evict();
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return block->rows != nullptr || block->fault != nullptr; });
  if (block->fault != nullptr) std::rethrow_exception(block->fault);
  return block->rows;
}

// Forgets the blocks that were not used for the longest time. The lock is held.
void StreamedSet::Evict() const {
  const size_t capacity = window_blocks_ * std::max<size_t>(1, readers_.size()) + 2;
  while (kept_.size() > capacity) {
    auto oldest = kept_.end();
    for (auto block = kept_.begin(); block != kept_.end(); ++block) {
      if (block->second->rows == nullptr) continue;
      if (oldest == kept_.end() || block->second->used < oldest->second->used) oldest = block;
    }
    if (oldest == kept_.end()) return;
    kept_.erase(oldest);
  }
}

// Opens the block's file, or takes a reader that is there, and goes to the block.
CsvReader* StreamedSet::GoTo(size_t number, Cursor* cursor) const {
  const Place& place = places_[number];
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Cursor>& free = cursors_[place.file];
    // A compressed file cannot go back: the reader that is nearest in front of the block.
    auto best = free.end();
    for (auto one = free.begin(); one != free.end(); ++one) {
      if (!one->reader->CanSeek() && one->next_row > place.first_row) continue;
      if (best == free.end() || one->next_row > best->next_row) best = one;
    }
    if (best != free.end()) {
      *cursor = std::move(*best);
      free.erase(best);
    }
  }
  if (cursor->reader == nullptr) cursor->reader = files_.Open(place.file);
  cursor->reader->GoTo(place.begin, place.bytes);
  return cursor->reader.get();
}

std::shared_ptr<const ParsedRows> StreamedSet::Read(size_t number) const {
  constexpr size_t kMaxOpen = 4;  // of one file
  const Place& place = places_[number];
  const int64_t count = EndOf(number) - place.first_row;
  Cursor cursor;
  CsvReader* const reader = GoTo(number, &cursor);
  SkippedRows counted_before;  // when the rows were indexed
  const std::unique_ptr<TableRows> rows = files_.Rows(reader, false, &counted_before);
  CsvLabels labels(rules_, files_.path(place.file), ColumnTitle(files_.columns(), files_.columns().label),
                   labels_.names());
  auto parsed = std::make_shared<ParsedRows>();
  parsed->features.reserve(static_cast<size_t>(count * files_.inputs()));
  labels.Reserve(static_cast<size_t>(count));
  for (int64_t row = 0; row < count; ++row) {
    if (!rows->Next(&parsed->features, &labels)) throw ChangedError(files_.path(place.file));
  }
  if (!scale_.shift.empty()) {
    ApplyScale(scale_, gpu::MatrixView<float>(parsed->features.data(), count, files_.inputs()));
  }
  parsed->classes = std::move(labels.classes());
  parsed->targets = std::move(labels.targets());
  cursor.next_row = place.first_row + count;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Cursor>& free = cursors_[place.file];
  if (free.size() < kMaxOpen) free.push_back(std::move(cursor));
  // Each has a buffer of a MiB.
  while (cursors_.size() > 2 * kMaxOpen) {
    cursors_.erase(cursors_.begin()->first == place.file ? std::prev(cursors_.end()) : cursors_.begin());
  }
  return parsed;
}

// The thread that reads what was announced.
void StreamedSet::ReadAhead() const {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !wanted_.empty(); });
    if (ends_) return;
    const size_t block = wanted_.front();
    wanted_.pop_front();
    if (kept_.count(block) > 0) continue;
    lock.unlock();
    try {
      Acquire(block);
    } catch (...) {  // whoever asks for the block is told
    }
    lock.lock();
  }
}

}  // namespace dtrain
