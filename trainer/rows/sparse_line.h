// SparseLine: one line of a text of sparse rows (libsvm, vw, criteo) as the row that it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/input/csv_field.h"
#include "trainer/rows/hashed_feature.h"

namespace dtrain {

// SparseLine: a row. Its memory is kept for the next one; the views point into the line.
struct SparseLine {
  std::string_view label;     // empty: it has none
  std::string_view tag;       // of vw; empty: it has none
  double weight = 1;          // of vw, and of libsvm with data.weight
  float offset = 0;           // of vw, with data.offset
  std::vector<uint64_t> ids;  // features in the order of the line, from 0; one may come twice
  std::vector<float> values;  // of each
  // Of those whose names are wanted, in the same order; libsvm's have no names, and what is 0 needs none.
  std::vector<NamedFeature> names;

  void Clear() {
    label = tag = {};
    weight = 1;
    offset = 0;
    ids.clear();
    values.clear();
    names.clear();
  }
};

// What is wrong with a line: at which byte of it, from 0, and which rule it breaks, with a remedy.
struct LineFault {
  size_t at = 0;
  std::string rule;
};

// LineRules: what lines are read for. Plain data.
struct LineRules {
  // Features are [0, inputs), and one beyond is a fault; unset: of any number.
  std::optional<int64_t> inputs{};
  // Each row has a label. false: none is needed, and libsvm's and criteo's first row says whether the rows of
  // the file have them.
  bool labels = true;
  // Where labels are not needed: a whole number from here on is none of the model's.
  int64_t end_of_labels = INT64_MAX;
  // If set, features beyond `inputs` are left out and counted here.
  int64_t* beyond = nullptr;
  // If set, rows of vw without a label, from which Vowpal Wabbit learns nothing, are no rows and are counted
  // here.
  int64_t* unlabelled = nullptr;
  const NameWish* names = nullptr;  // null: none are wanted
};

// LineParser: the parser of one format. Owner: a reader. Thread: one.
class LineParser {
 public:
  virtual ~LineParser() = default;
  // Parses a line without its end. False: it has no row, as an empty one or a comment has not. A fault leaves
  // `row` undefined.
  virtual bool Parse(std::string_view line, SparseLine* row, std::optional<LineFault>* fault) = 0;
  // Whether Parse() finds a row in the line, or a fault.
  virtual bool HasRow(std::string_view line) const = 0;
  // Returns a number of features that the line's row does not exceed, without parsing it.
  virtual int64_t MaxFeatures(std::string_view line) const = 0;
};

// What is wrong with a number: "TITLE = x; must be a number. Correct it, or remove the row."
std::string NumberFault(const std::string& title, std::string_view text, NumberText state);

// Whether a text is numbers with this character between them, at least so many.
bool AreNumbers(std::string_view text, char between, size_t min_count);

// The parser of libsvm's text (libsvm_line.cc). The label stays a text, which RowLabels reads.
std::unique_ptr<LineParser> MakeLibsvmParser(const DataConfig& data, const LineRules& rules);
// What a comment of libsvm's says about the first index, as scikit-learn's "Column indices are zero-based"
// does; unset: nothing.
std::optional<int64_t> IndexBaseOf(std::string_view line);

// Whether a token is the group of libsvm's row, qid:7, which is left out.
inline bool IsGroup(std::string_view token) {
  const std::string_view front = token.substr(0, 4);
  return front == "qid:" || front == "QID:";
}

// Returns the blanks and tabs of a line.
int64_t CountBlanks(std::string_view line);

// Reads a whole number from its first digit on, modulo 2^64; returns what is behind its last digit, `at` if
// there is none. Eight digits are read at once: how many a number has cannot be foretold, and a loop of
// digits would stumble at each end (Lemire, Number parsing at a gigabyte per second, 2021).
inline const char* ReadDigits(const char* at, const char* end, uint64_t* number) {
  *number = 0;
  if (end - at >= 8) {
    uint64_t text = 0;
    std::memcpy(&text, at, sizeof text);  // the first digit is the lowest byte
    const uint64_t digits = text ^ 0x3030303030303030;
    const uint64_t others = (digits | (digits + 0x7676767676767676)) & 0x8080808080808080;
    const int count = others == 0 ? 8 : __builtin_ctzll(others) / 8;
    if (count == 0) return at;
    uint64_t value = digits << (64 - 8 * count);  // zeros in front
    value = (value * 10 + (value >> 8)) & 0x00ff00ff00ff00ff;
    value = (value * 100 + (value >> 16)) & 0x0000ffff0000ffff;
    *number = (value * 10000 + (value >> 32)) & 0x00000000ffffffff;
    at += count;
    if (count < 8) return at;
  }
  for (; at < end && *at >= '0' && *at <= '9'; ++at)
    *number = 10 * *number + static_cast<uint64_t>(*at - '0');
  return at;
}

}  // namespace dtrain
