// Measures the reading of texts of rows alone, without training: rows per second of our reader into float32,
// and of a limit that only finds the separators and reads the digits, of the same file in the same run. Both
// are one thread, so the processor's seconds are those of the clock. Beside it the finding of the ends of
// rows, and as its limit memchr for line ends, both with the reading of the file; the rows of a cache that
// was made of the file, and of a table the copying of as many bytes. The limit of TFRecord is our reader of
// CSV with the same rows. Other readers: reading.py.
//   reading_bench [--benchmark_...] [FILE...]: of these CSV files with a header, whose label is y
// Without FILE it measures a made table of 20 numbers a row, made rows of 39 features in libsvm's, Vowpal
// Wabbit's and Criteo's formats, tables as TFRecord, and the parsers of such lines alone, in memory, also
// with words as names.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/tfrecord.h"
#include "trainer/config/config.h"
#include "trainer/input/sources.h"
#include "trainer/rows/criteo_line.h"
#include "trainer/rows/example_fields.h"
#include "trainer/rows/read_table.h"
#include "trainer/rows/record_scan.h"
#include "trainer/rows/row_files.h"
#include "trainer/rows/vw_line.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/memory_rows.h"
#include "trainer/sets/source.h"
#include "trainer/synth/synth_table.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kRows = 200'000;
constexpr int64_t kFeatures = 19;
constexpr int64_t kNumbers = 13, kTexts = 26, kListLength = 64;  // of tables that are TFRecord too

constexpr int64_t kLines = 50'000;  // of those in memory
constexpr int64_t kLineFeatures = 39, kLineWidth = 10'000'000;

// A table that is read both as TFRecord and as CSV: Criteo's, with all columns hashed, or those of
// texts, or which has whole numbers alone; or a linear one, as features or as a list.
enum class Both { kNone, kHashed, kMixed, kWhole, kFloats, kList };

// A text to read: a CSV file of the user, or one that is made.
struct Text {
  std::string name = "csv_linear";
  DataFormat format = DataFormat::kCsv;
  std::string given;  // the user's file; empty: it is made
  Both both = Both::kNone;
  bool is_criteo() const { return both == Both::kHashed || both == Both::kMixed || both == Both::kWhole; }
};

Config ConfigOf(const Text& text, const std::string& path) {
  Config config;
  config.model.kind = ModelKind::kLinear;
  config.data.train.format = text.format;
  config.data.train.path = {path};
  config.data.train.label = "y";
  config.data.threads = 1;
  if (text.is_criteo()) {
    config.data.train.label = "label";
    config.data.missing = MissingValues::kZero;
  }
  for (int64_t i = 1; i <= kNumbers && text.both == Both::kHashed; ++i)
    config.data.hash.push_back(fmt::format("I{}", i));
  for (int64_t i = 1; i <= kTexts && (text.both == Both::kHashed || text.both == Both::kMixed); ++i)
    config.data.hash.push_back(fmt::format("C{}", i));
  if (text.both == Both::kNone || !config.data.hash.empty()) config.data.hash_bits = 22;
  if (text.format == DataFormat::kLibsvm) config.model.inputs = kLineWidth;
  return config;
}

// The features of sparse rows.
int64_t WidthOf(const Config& config) {
  return config.model.inputs.value_or(int64_t{1} << *HashBits(config.data));
}

int64_t ReadText(const Text& text, const std::string& path) {
  const Config config = ConfigOf(text, path);
  const LabelRules rules{std::nullopt, "model.kind = linear", ""};
  SourceInputs inputs(config.data.train.path, "data.train.path");
  if (!HasSparseRows(config.data)) return ReadTrainTable(config.data, rules, {}, &inputs).Rows().rows;
  return ReadSparseTable(config.data, rules, WidthOf(config), &inputs).rows.count();
}

// Adds up the digits of each field as a whole number, whatever else is in it, and counts lines.
int64_t ReadDigits(const Text& text, const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  DT_CHECK(fd >= 0, path);
  std::vector<char> block(1 << 20);
  std::array<bool, 256> is_stop{};
  for (const char stop : {',', ' ', ':', '\t', '\n'}) is_stop[static_cast<unsigned char>(stop)] = true;
  uint64_t number = 0, sum = 0;
  int64_t lines = 0;
  for (ssize_t got; (got = read(fd, block.data(), block.size())) > 0;) {
    for (const char* at = block.data(); at < block.data() + got; ++at) {
      const auto digit = static_cast<uint64_t>(static_cast<unsigned char>(*at)) - '0';
      if (digit < 10) {
        number = 10 * number + digit;
      } else if (is_stop[static_cast<unsigned char>(*at)]) {
        sum += number;
        number = 0;
        lines += *at == '\n' ? 1 : 0;
      }
    }
  }
  close(fd);
  benchmark::DoNotOptimize(sum);
  return lines - (text.format == DataFormat::kCsv ? 1 : 0);  // without the header
}

// Finds the ends of rows and parses none.
int64_t ScanText(const Text& text, const std::string& path) {
  const Config config = ConfigOf(text, path);
  const RowFiles files(config.data, {}, text.format == DataFormat::kCsv ? 0 : WidthOf(config));
  RecordScan scan(files);
  for (RecordBlock block; scan.Next(&block);) benchmark::DoNotOptimize(block.bytes);
  return scan.rows();
}

// Reads the file and counts its lines.
int64_t CountLines(const Text& text, const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  DT_CHECK(fd >= 0, path);
  std::vector<char> block(1 << 20);
  int64_t lines = 0;
  for (ssize_t got; (got = read(fd, block.data(), block.size())) > 0;) {
    const char* const end = block.data() + got;
    for (const char* at = block.data(); at < end; ++at, ++lines) {
      at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
      if (at == nullptr) break;
    }
  }
  close(fd);
  return lines - (text.format == DataFormat::kCsv ? 1 : 0);  // without the header
}

// The rows of a cache (data.cache: file), as a worker takes them in each epoch after the first: in batches,
// shuffled in windows.
class CachedEpochs {
 public:
  CachedEpochs(const Text& text, const std::string& path) {
    DT_CHECK(mkdtemp(directory_.data()) != nullptr, directory_);
    Config config = ConfigOf(text, path);
    if (HasSparseRows(config.data)) config.model.inputs = WidthOf(config);
    config.data.cache = DataCache::kFile;
    config.data.cache_dir = directory_;
    config.train.batch_size = 100;
    const LoadedData loaded = LoadData(config);
    rows_ = *loaded.train->rows();
    row_bytes_ = static_cast<size_t>(loaded.train->inputs()) * sizeof(float);
    source_ = MakeBatchSource(config, loaded.train, 0, 1);
  }
  ~CachedEpochs() { std::filesystem::remove_all(directory_); }
  CachedEpochs(const CachedEpochs&) = delete;
  CachedEpochs& operator=(const CachedEpochs&) = delete;

  int64_t rows() const { return rows_; }
  void Read() {
    Batch batch;
    for (int64_t rows = 0; rows < rows_; rows += batch.rows) {
      DT_CHECK(source_->Next(&batch));
      benchmark::DoNotOptimize(batch.inputs);
      benchmark::DoNotOptimize(batch.sparse.ids);
    }
  }
  // Copies as many bytes in order.
  void Copy() {
    from_.resize(static_cast<size_t>(rows_) * row_bytes_, 1);
    to_.resize(100 * row_bytes_);
    for (size_t at = 0; at + to_.size() <= from_.size(); at += to_.size()) {
      std::memcpy(to_.data(), from_.data() + at, to_.size());
      benchmark::ClobberMemory();
    }
  }

 private:
  std::string directory_ = "/tmp/dtrain-cached.XXXXXX";
  int64_t rows_ = 0;
  size_t row_bytes_ = 0;
  std::unique_ptr<BatchSource> source_;
  std::vector<char> from_, to_;
};

std::string TextOf(const std::unique_ptr<SynthTable>& table, int64_t rows) {
  std::string text = table->Header();
  table->Append(0, rows, &text);
  return text;
}

std::string MadeText(DataFormat format, int64_t rows) {
  const SparseForm form = format == DataFormat::kVw ? SparseForm::kVw : SparseForm::kLibsvm;
  return TextOf(format == DataFormat::kCsv      ? NewLinearTable(1, kFeatures)
                : format == DataFormat::kCriteo ? NewCriteoTable(1, false)
                                                : NewSparseTable(1, form, kLineFeatures, kLineWidth),
                rows);
}

// Returns the fields of a line of CSV without quotes.
std::vector<std::string> FieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line + ',');
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

// A table as CSV, or the same rows as TFRecord.
std::string MadeTable(const Text& text) {
  const bool has_list = text.both == Both::kList;
  std::istringstream lines(TextOf(
      text.is_criteo() ? NewCriteoTable(1, true) : NewLinearTable(1, has_list ? kListLength : kNumbers),
      kRows));
  std::vector<std::string> names;
  std::string csv, records;
  ExampleWriter example;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields = FieldsOf(line);
    if (text.both == Both::kWhole) fields.resize(1 + kNumbers);
    if (text.both == Both::kWhole)
      std::replace(fields.begin(), fields.end(), std::string(), std::string("0"));
    csv += fmt::format("{}\n", fmt::join(fields, ","));
    if (names.empty()) {
      names = fields;
      continue;
    }
    std::vector<float> list;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].empty()) continue;
      if (!text.is_criteo() && has_list && names[i] != "y") {
        list.push_back(std::stof(fields[i]));
      } else if (!text.is_criteo()) {
        example.AddFloats(names[i], {std::stof(fields[i])});
      } else if (i > kNumbers) {
        example.AddTexts(names[i], {fields[i]});
      } else {
        example.AddInts(names[i], {std::stoll(fields[i])});
      }
    }
    if (has_list) example.AddFloats("x", list);
    AppendTfrecord(example.Take(), &records);
  }
  return text.format == DataFormat::kCsv ? csv : records;
}

// A text in the temporary directory, which is removed at the end of the process.
class MadeFile {
 public:
  explicit MadeFile(const std::string& text) {
    const int fd = mkstemp(path_.data());
    DT_CHECK(fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), path_);
    close(fd);
  }
  ~MadeFile() { unlink(path_.c_str()); }
  MadeFile(const MadeFile&) = delete;
  MadeFile& operator=(const MadeFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/dtrain-reading.XXXXXX";
};

// The file to read, which is made when it is first measured.
std::string PathOf(const Text& text) {
  if (!text.given.empty()) return text.given;
  static std::map<std::pair<std::string, DataFormat>, std::unique_ptr<MadeFile>> made;
  std::unique_ptr<MadeFile>& file = made[{text.name, text.format}];
  if (file == nullptr) {
    file =
        std::make_unique<MadeFile>(text.both == Both::kNone ? MadeText(text.format, kRows) : MadeTable(text));
  }
  return file->path();
}

void Register(const std::string& name, const Text& text, int64_t (*read)(const Text&, const std::string&)) {
  benchmark::RegisterBenchmark((text.name + name).c_str(), [=](benchmark::State& state) {
    const std::string path = PathOf(text);
    int64_t rows = read(text, path);
    for (auto _ : state) benchmark::DoNotOptimize(rows = read(text, path));
    state.SetItemsProcessed(state.iterations() * rows);
    state.SetBytesProcessed(state.iterations() * std::ifstream(path, std::ios::ate).tellg());
  });
}

void RegisterCached(const std::string& name, const Text& text, void (CachedEpochs::*read)()) {
  benchmark::RegisterBenchmark((text.name + name).c_str(), [=](benchmark::State& state) {
    CachedEpochs epochs(text, PathOf(text));
    (epochs.*read)();
    for (auto _ : state) (epochs.*read)();
    state.SetItemsProcessed(state.iterations() * epochs.rows());
  });
}

// The rows of a Criteo table with a namespace for each column: "1 |i1 5 |c1 68fd1e64 ...".
std::string WordsOf(const std::string& criteo) {
  std::string text;
  int column = 0;
  for (const char c : criteo) {
    if (c == '\t') {
      ++column;
      text += fmt::format(" |{}{} ", column <= 13 ? 'i' : 'c', column <= 13 ? column : column - 13);
    } else {
      text += c;
    }
    if (c == '\n') column = 0;
  }
  return text;
}

using MakeParser = std::unique_ptr<LineParser> (*)(const DataConfig&, const LineRules&);

void RegisterLines(const std::string& name, DataFormat format, MakeParser make, std::string (*text_of)()) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    DataConfig data;
    data.train.format = format;
    data.hash_bits = 24;
    const std::unique_ptr<LineParser> parser = make(data, {});
    const std::string text = text_of();
    SparseLine row;
    std::optional<LineFault> fault;
    int64_t rows = 0;
    for (auto _ : state) {
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = text.find('\n', begin);
        DT_CHECK(parser->Parse({text.data() + begin, end - begin}, &row, &fault), fault ? fault->rule : "");
        benchmark::DoNotOptimize(row.ids.data());
        begin = end + 1;
        ++rows;
      }
    }
    state.SetItemsProcessed(rows);
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  });
}

void RegisterSparse() {
  RegisterLines("lines_criteo/dtrain", DataFormat::kCriteo, MakeCriteoParser,
                [] { return MadeText(DataFormat::kCriteo, kLines); });
  RegisterLines("lines_vw_numbers/dtrain", DataFormat::kVw, MakeVwParser,
                [] { return MadeText(DataFormat::kVw, kLines); });
  RegisterLines("lines_vw_words/dtrain", DataFormat::kVw, MakeVwParser,
                [] { return WordsOf(MadeText(DataFormat::kCriteo, kLines)); });
}

void RegisterRecords() {
  for (const auto& [name, both] : {std::pair("tfrecord_hashed", Both::kHashed),
                                   {"tfrecord_mixed", Both::kMixed},
                                   {"tfrecord_whole", Both::kWhole},
                                   {"tfrecord_floats", Both::kFloats},
                                   {"tfrecord_list", Both::kList}}) {
    Register("/dtrain", {name, DataFormat::kTfrecord, "", both}, ReadText);
    Register("/limit", {name, DataFormat::kCsv, "", both}, ReadText);
  }
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<Text> texts;
  for (int i = 1; i < argc; ++i) texts.push_back({argv[i], DataFormat::kCsv, argv[i]});
  if (texts.empty()) {
    texts.emplace_back();
    for (const auto& [name, format] : {std::pair("libsvm", DataFormat::kLibsvm),
                                       {"vw", DataFormat::kVw},
                                       {"criteo", DataFormat::kCriteo}}) {
      texts.push_back({name, format, ""});
    }
    RegisterSparse();
    RegisterRecords();
  }
  for (const Text& text : texts) {
    Register("/dtrain", text, ReadText);
    Register("/limit", text, ReadDigits);
    Register("_scan/dtrain", text, ScanText);
    Register("_scan/limit", text, CountLines);
    RegisterCached("_cached/dtrain", text, &CachedEpochs::Read);
    if (text.format == DataFormat::kCsv) RegisterCached("_cached/limit", text, &CachedEpochs::Copy);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) { return dtrain::bench::Main(argc, argv); }
