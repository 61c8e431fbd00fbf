// Rows of files that do not stay in memory (data.cache: none). Blocks of rows, whose places are those of a
// RowIndex, are read when they are asked for, parsed, and forgotten. Blocks that are announced are read by
// threads of the set's own. Plain files are read at any place; a compressed one is a sequence, which is read
// from its front again for a row that lies behind.
#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/file_sets.h"
#include "trainer/sets/row_index.h"

namespace dtrain {
namespace {

UserError ChangedError(const std::string& path) {
  return UserError(
      "{}: has changed since the start of this run. Start again when nobody writes to it; rows of a file "
      "that grows come by exec:tail -f.",
      path);
}

std::vector<std::string> StatesOf(const RowFiles& files) {
  std::vector<std::string> states;
  for (size_t file = 0; file < files.count(); ++file) states.push_back(FileState(files.path(file)));
  return states;
}

std::vector<int64_t> FirstRows(const RowIndex& index) {
  std::vector<int64_t> rows;
  for (const RecordBlock& place : index.places) rows.push_back(place.first_row);
  return rows;
}

size_t FileOf(const RecordBlock& place) { return static_cast<size_t>(place.file); }

// BlockMemory: memory for the rows of a block: that of a block which nobody needs any more has grown already,
// and its pages are there. Thread: any. Outlives all that it gave.
class BlockMemory {
 public:
  std::shared_ptr<ParsedRows> Take() {
    std::unique_ptr<ParsedRows> rows;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!spare_.empty()) {
        rows = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    rows == nullptr ? void(rows = std::make_unique<ParsedRows>()) : rows->Clear();
    return {rows.release(), [this](ParsedRows* read) { Keep(std::unique_ptr<ParsedRows>(read)); }};
  }

 private:
  void Keep(std::unique_ptr<ParsedRows> rows) {
    constexpr size_t kMaxSpare = 2;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.size() < kMaxSpare) spare_.push_back(std::move(rows));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<ParsedRows>> spare_;
};

// HeldBlocks: blocks that rows are copied from, by number. One is looked up for each row: in a table that is
// at most half full, from the place of its number on.
class HeldBlocks {
 public:
  explicit HeldBlocks(size_t max) : max_(max) {
    size_t places = 2;
    while (places < 2 * max) places *= 2;
    places_.resize(places);
  }
  // Null: it is not here.
  const ParsedRows* Find(size_t number) const { return places_[PlaceOf(number)].rows.get(); }
  bool is_full() const { return count_ == max_; }
  // One that is not here.
  const ParsedRows* Add(size_t number, std::shared_ptr<const ParsedRows> rows) {
    ++count_;
    Held& held = places_[PlaceOf(number)];
    held = {number, std::move(rows)};
    return held.rows.get();
  }
  void Clear() {
    std::fill(places_.begin(), places_.end(), Held());
    count_ = 0;
  }

 private:
  struct Held {
    size_t number = 0;
    std::shared_ptr<const ParsedRows> rows;  // null: none is held here
  };
  size_t PlaceOf(size_t number) const {
    const size_t last = places_.size() - 1;
    size_t place = number & last;
    while (places_[place].rows != nullptr && places_[place].number != number) place = (place + 1) & last;
    return place;
  }

  const size_t max_;
  size_t count_ = 0;
  std::vector<Held> places_;
};

// ParsedFetch: the blocks of rows that are in memory, and the threads that read ahead. Owner: the set.
// Thread: any.
class ParsedFetch : public Fetch {
 public:
  ParsedFetch(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
              int64_t inputs, bool parses);
  ~ParsedFetch() override;

  SetForm form() const;
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override;
  void WillNeed(const std::vector<RowRun>& runs) const override;

 private:
  struct Block {
    std::shared_ptr<const ParsedRows> rows;  // null: it is being read, or was not
    std::exception_ptr fault;
    uint64_t used = 0;  // when, in calls
  };
  // A row: its block, its number there, and where it is to be read to.
  struct Place {
    const ParsedRows* block;
    int64_t at;
    int64_t to;

    // Bring it near to the processor: first where it begins, then the row. As ForEachAhead() has them.
    [[gnu::always_inline]] void WillFind() const {
      if (!block->sparse.ids.empty()) __builtin_prefetch(block->sparse.offsets.data() + at);
    }
    [[gnu::always_inline]] void WillCopy(size_t width) const {
      const SparseBuffer& sparse = block->sparse;
      const auto row = static_cast<size_t>(at);
      if (sparse.ids.empty()) return Prefetch(block->features, row * width, (row + 1) * width);
      const auto begin = static_cast<size_t>(sparse.offsets[row]);
      const auto end = static_cast<size_t>(sparse.offsets[row + 1]);
      Prefetch(sparse.ids, begin, end);
      Prefetch(sparse.values, begin, end);
    }

   private:
    template <typename T>
    [[gnu::always_inline]] static void Prefetch(const std::vector<T>& values, size_t begin, size_t end) {
      constexpr size_t kInLine = 64 / sizeof(T);
      constexpr size_t kMaxValues = 64;  // longer rows are read in order, which the processor sees itself
      if (values.empty()) return;
      end = std::min(end, begin + kMaxValues);
      for (size_t i = begin; i < end; i += kInLine) __builtin_prefetch(values.data() + i);
    }
  };
  // A file that is open behind the last row that was read from it.
  struct Cursor {
    std::unique_ptr<RowFile> rows;
    int64_t next_row = -1;
    std::unique_ptr<SkippedRows> skipped;  // which were counted when the rows were indexed
  };

  void Copy(const std::vector<Place>& places, const RowsOut& out) const;
  size_t BlockOf(int64_t row) const;
  int64_t EndOf(size_t block) const;
  std::shared_ptr<const ParsedRows> Acquire(size_t block) const;
  std::shared_ptr<const ParsedRows> ReadBlock(size_t block) const;
  std::shared_ptr<const ParsedRows> Parse(size_t block) const;
  void CheckUnchanged(size_t file) const;
  void GoTo(size_t block, Cursor* cursor) const;
  void Evict() const;
  void ReadAhead() const;

  const LabelRules rules_;
  const RowFiles files_;
  const std::vector<std::string> states_;  // of the files, before they were indexed
  const RowIndex index_;
  const RowLabels labels_;                 // none yet, of the kind that all are
  const std::vector<int64_t> first_rows_;  // of the blocks; they lie closer than in the index

  mutable BlockMemory memory_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  mutable std::map<size_t, std::shared_ptr<Block>> kept_;  // by number
  mutable std::map<size_t, std::vector<Cursor>> cursors_;  // by file, those that nobody uses
  // What is left to read ahead of what each reader has announced last.
  mutable std::map<std::thread::id, std::deque<size_t>> wanted_;
  mutable size_t window_blocks_ = 4;  // of one of them: its window and the next
  mutable uint64_t calls_ = 0;
  mutable bool ends_ = false;
  mutable std::vector<std::thread> ahead_;
};

ParsedFetch::ParsedFetch(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                         int64_t inputs, bool parses)
    : rules_(rules),
      files_(data, how, inputs),
      states_(StatesOf(files_)),
      index_(IndexRows(data, rules, how, files_, parses)),
      labels_(index_.labels != nullptr
                  ? *index_.labels
                  : RowLabels(rules, "", files_.label_title(), index_.facts.class_names)),
      first_rows_(FirstRows(index_)) {
  // One processor is for what is trained. Each thread has a file open, whose buffer has a MiB.
  constexpr unsigned kMaxThreads = 4;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 2u, kMaxThreads + 1) - 1;
  for (unsigned i = 0; i < threads; ++i) ahead_.emplace_back([this] { ReadAhead(); });
}

SetForm ParsedFetch::form() const {
  SetForm form{files_.inputs(), rules_.classes, index_.facts.rows};
  form.sparse = files_.sparse();
  form.weighted = files_.weighted();
  form.has_offsets = files_.has_offsets();
  auto order = std::make_shared<std::vector<int64_t>>();
  for (const RecordBlock& place : index_.places) {
    if (place.is_reached == 1) order->push_back(place.first_row);
  }
  form.blocks = std::move(order);
  form.facts = std::make_shared<PassFacts>(index_.facts);
  return form;
}

ParsedFetch::~ParsedFetch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : ahead_) thread.join();
}

size_t ParsedFetch::BlockOf(int64_t row) const {
  return static_cast<size_t>(std::upper_bound(first_rows_.begin(), first_rows_.end(), row) -
                             first_rows_.begin()) -
         1;
}

int64_t ParsedFetch::EndOf(size_t block) const {
  return block + 1 < first_rows_.size() ? first_rows_[block + 1] : index_.facts.rows;
}

void ParsedFetch::Read(gpu::Span<const int64_t> rows, const RowsOut& out) const {
  if (out.sparse != nullptr) out.sparse->Clear();
  size_t max_blocks = 0;  // that are in memory anyway
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    max_blocks = window_blocks_;
  }
  HeldBlocks blocks(std::min(max_blocks, static_cast<size_t>(rows.size)));
  std::vector<Place> places;
  places.reserve(static_cast<size_t>(rows.size));
  for (int64_t i = 0; i < rows.size; ++i) {
    const size_t number = BlockOf(rows[i]);
    const ParsedRows* block = blocks.Find(number);
    if (block == nullptr) {
      if (blocks.is_full()) {
        Copy(places, out);
        places.clear();
        blocks.Clear();
      }
      block = blocks.Add(number, Acquire(number));
    }
    places.push_back({block, rows[i] - first_rows_[number], i});
  }
  Copy(places, out);
}

void ParsedFetch::Copy(const std::vector<Place>& places, const RowsOut& out) const {
  const auto width = static_cast<size_t>(files_.inputs());
  std::vector<int64_t> numbers(places.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto place_of = [&](int64_t i) -> const Place& { return places[static_cast<size_t>(i)]; };
  ForEachAhead(
      numbers, [&](int64_t i) __attribute__((always_inline)) { place_of(i).WillFind(); },
      [&](int64_t i) __attribute__((always_inline)) { place_of(i).WillCopy(width); },
      [&](int64_t i) {
        const Place& place = place_of(i);
        const ParsedRows& block = *place.block;
        const auto at = static_cast<size_t>(place.at), to = static_cast<size_t>(place.to);
        if (out.inputs != nullptr) {
          std::copy_n(block.features.data() + at * width, width, out.inputs + to * width);
        }
        if (out.sparse != nullptr) out.sparse->AddRow(block.sparse, place.at);
        if (out.labels != nullptr) out.labels[to] = block.classes[at];
        if (out.targets != nullptr) out.targets[to] = block.targets[at];
        if (out.weights != nullptr) out.weights[to] = block.weights[at];
        if (out.row_offsets != nullptr) out.row_offsets[to] = block.row_offsets[at];
      });
}

void ParsedFetch::WillNeed(const std::vector<RowRun>& runs) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Workers of one process share the set, and each has windows of its own. What is left of the one before is
  // read by now, or forgotten again.
  std::deque<size_t>& wanted = wanted_[std::this_thread::get_id()];
  wanted.clear();
  size_t blocks = 0;
  for (const RowRun& run : runs) {
    const size_t last = BlockOf(run.end - 1);
    for (size_t block = BlockOf(run.begin); block <= last; ++block, ++blocks) {
      // What is there already must outlive the rows of the window before, which were used since.
      const auto kept = kept_.find(block);
      kept == kept_.end() ? wanted.push_back(block) : void(kept->second->used = ++calls_);
    }
  }
  window_blocks_ = std::max(window_blocks_, blocks);
  changed_.notify_all();
}

// Returns a block, and reads it if nobody does.
std::shared_ptr<const ParsedRows> ParsedFetch::Acquire(size_t number) const {
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
      rows = ReadBlock(number);
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
void ParsedFetch::Evict() const {
  const size_t capacity = window_blocks_ * std::max<size_t>(1, wanted_.size()) + 2;
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
void ParsedFetch::GoTo(size_t number, Cursor* cursor) const {
  const RecordBlock& place = index_.places[number];
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Cursor>& free = cursors_[FileOf(place)];
    // A compressed file cannot go back: the reader that is nearest in front of the block.
    auto best = free.end();
    for (auto one = free.begin(); one != free.end(); ++one) {
      if (!one->rows->CanSeek() && one->next_row > place.first_row) continue;
      if (best == free.end() || one->next_row > best->next_row) best = one;
    }
    if (best != free.end()) {
      *cursor = std::move(*best);
      free.erase(best);
    }
  }
  if (cursor->rows == nullptr) {
    cursor->skipped = std::make_unique<SkippedRows>();
    cursor->rows = files_.Open(FileOf(place), cursor->skipped.get());
  }
  *cursor->skipped = SkippedRows();
  cursor->rows->GoTo(place.begin, place.bytes);
}

void ParsedFetch::CheckUnchanged(size_t file) const {
  if (FileState(files_.path(file)) != states_[file]) throw ChangedError(files_.path(file));
}

// Rows of a file that was written to are not of one table, and their faults are no faults of a row.
std::shared_ptr<const ParsedRows> ParsedFetch::ReadBlock(size_t number) const {
  const size_t file = FileOf(index_.places[number]);
  std::shared_ptr<const ParsedRows> rows;
  try {
    rows = Parse(number);
  } catch (const UserError&) {
    CheckUnchanged(file);
    throw;
  }
  CheckUnchanged(file);
  return rows;
}

std::shared_ptr<const ParsedRows> ParsedFetch::Parse(size_t number) const {
  constexpr size_t kMaxOpen = 4;  // of one file
  const RecordBlock& place = index_.places[number];
  const int64_t count = EndOf(number) - place.first_row;
  Cursor cursor;
  GoTo(number, &cursor);
  RowLabels labels = labels_;
  labels.NextFile(files_.path(FileOf(place)));
  const std::shared_ptr<ParsedRows> parsed = memory_.Take();
  if (!files_.sparse()) parsed->features.reserve(static_cast<size_t>(count * files_.inputs()));
  labels.Reserve(static_cast<size_t>(count));
  for (int64_t row = 0; row < count; ++row) {
    if (!cursor.rows->Next(parsed.get(), &labels)) throw ChangedError(files_.path(FileOf(place)));
  }
  parsed->classes = std::move(labels.classes());
  parsed->targets = std::move(labels.targets());
  cursor.next_row = place.first_row + count;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Cursor>& free = cursors_[FileOf(place)];
  if (free.size() < kMaxOpen) free.push_back(std::move(cursor));
  // Each has a buffer of a MiB.
  while (cursors_.size() > 2 * kMaxOpen) {
    cursors_.erase(cursors_.begin()->first == FileOf(place) ? std::prev(cursors_.end()) : cursors_.begin());
  }
  return parsed;
}

// A thread that reads what was announced, of the reader that has the most to come.
void ParsedFetch::ReadAhead() const {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto longest = [&] {
    return std::max_element(wanted_.begin(), wanted_.end(),
                            [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  };
  while (true) {
    changed_.wait(lock, [&] { return ends_ || (!wanted_.empty() && !longest()->second.empty()); });
    if (ends_) return;
    std::deque<size_t>& wanted = longest()->second;
    const size_t block = wanted.front();
    wanted.pop_front();
    if (kept_.count(block) > 0) continue;
    lock.unlock();
    try {
      Acquire(block);
    } catch (...) {  // whoever asks for the block is told
    }
    lock.lock();
  }
}

}  // namespace

DataSet StreamedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                    int64_t inputs, bool parses) {
  auto rows = std::make_shared<ParsedFetch>(data, rules, how, inputs, parses);
  SetForm form = rows->form();
  return {std::move(form), std::move(rows)};
}

}  // namespace dtrain
