// SynthTable: a table of text that is made, with a known truth: for trying things out, for tests and for
// measurements. Each row is a function of (seed, row), so any range of rows can be made again, anywhere.
// Owner: the caller. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace dtrain {

class SynthTable {  // implementations: synth_table.cc, planted_tables.cc
 public:
  virtual ~SynthTable() = default;
  // Returns the line that names the columns, with its end; empty if the table has none.
  virtual std::string Header() const = 0;
  // Appends the rows [begin, end) to `text`, each with its line end.
  virtual void Append(int64_t begin, int64_t end, std::string* text) = 0;
  // Returns a sentence about the model that has made the rows appended so far, with its figures; empty if
  // there is nothing to say. Only after KeepTruth().
  virtual std::string Truth() const { return ""; }
  // From now on Append() adds up what Truth() needs.
  virtual void KeepTruth() {}
};

// "linear": x1..xN and y = 2 (x1 + .. + xN) + 10 + 0.33 e, where x and e are normal. N = `features`.
std::unique_ptr<SynthTable> NewLinearTable(uint64_t seed, int64_t features);

// "digits": drawn digits as label and 784 bytes, p0..p783.
std::unique_ptr<SynthTable> NewDigitsTable(uint64_t seed);

// "criteo": clicks on advertisements in the form of Criteo's files (planted_tables.cc). With `header` the
// table is CSV with names; else it is separated by tabs and has none, as Criteo's.
std::unique_ptr<SynthTable> NewCriteoTable(uint64_t seed, bool header);

// The same as TFRecord, a tf.train.Example for each row: the label and the numbers are int64, categories
// texts, and what is missing is no feature.
std::unique_ptr<SynthTable> NewCriteoRecords(uint64_t seed);

// "libsvm" and "vw": rows of `features` features out of `width`, which is at least as much
// (planted_tables.cc).
enum class SparseForm { kLibsvm, kVw };
std::unique_ptr<SynthTable> NewSparseTable(uint64_t seed, SparseForm form, int64_t features, int64_t width);

}  // namespace dtrain
