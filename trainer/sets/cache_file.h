// CacheFile: the name of a file under data.cache_dir that holds what was made of data.train, and what
// determines its content. It is made by the first task that needs it, while others wait, and made anew when
// a file of data.train or a key that changes its parsing has changed. Thread: any; free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

struct CacheFile {
  std::string path;
  std::string made_of;  // a file that was made of something else is not used
};

// Returns data.cache_dir, or what it is by default, and makes it. Throws as ThrowNoCache().
std::string MakeCacheDirectory(const DataConfig& data);

// Returns the name of the cache of these data, and makes its directory. `how`: as in CsvLayout. `inputs`: the
// features of a row. `ending`: of its name. Throws UserError for files that are not there, and as
// ThrowNoCache().
CacheFile CacheFileOf(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                      int64_t inputs, const char* ending);

// Returns what changes when somebody writes to a file, or puts another one in its place: its size, its
// identity, and its times. Nobody can set the time of its last change.
std::string FileState(const std::string& path);

// Calls `open` until it finds the file, and `make` when it does not. One task at a time makes it; who dies
// while it does holds up nobody. Throws UserError when another task makes it for longer than
// data.cache_wait_s.
void OpenOrMake(const DataConfig& data, const CacheFile& file, const std::function<bool()>& open,
                const std::function<void()>& make);

// The ending of files that become a cache when they are whole. Who writes one holds its lock (flock).
constexpr const char* kTemporary = ".tmp";
// Removes those of this cache whose writers were killed.
void RemoveLeftOver(const std::string& path);

// PassFacts: what one pass over all rows of data.train has found. Of rows in memory it has the names of
// classes and what was left out.
struct PassFacts {
  int64_t rows = 0;
  std::vector<std::string> class_names;
  std::vector<int64_t> class_rows;  // of each class, up to the last that has any; empty: not counted
  SkippedRows skipped;
  DataFingerprint fingerprint;  // rows: 0: it is not known
  // Why rows that do not stay in memory are all parsed before the first of them is trained on; empty: they
  // are not, or were by an earlier run.
  std::string why_parsed;
};
// The facts of rows in memory.
std::shared_ptr<const PassFacts> FactsOf(std::vector<std::string> class_names, SkippedRows skipped);

// Call it at the end of a pass whose classes were counted as they came: adds what the pass and its labels say
// to `facts`, and gives the counts the numbers of the names. Throws UserError if there were no rows.
void FinishFacts(const Pass& pass, RowLabels* labels, PassFacts* facts);

// Convert to and from the text with which a cache says what it is. Unset: it was made of something else.
std::string Describe(const CacheFile& file, const PassFacts& facts);
std::optional<PassFacts> FactsIn(const CacheFile& file, std::string_view text);

[[noreturn]] void ThrowNoCache(const std::string& path, int error);

}  // namespace dtrain
