// ExampleReader: the records of a file of TFRecord (base/tfrecord.h), each a tf.train.Example, as those of a
// table: a column for each feature, in the order of names, in which x2 comes before x10. A list of n > 1
// values is the columns x[0] to x[n-1]. The first records say which columns there are, and most of them their
// kinds and lengths: a record of another kind or length is a fault of its row, and so is a feature that none
// of them has where all are needed. Values are as a table's text would have them: an int64 5 and a float 5.0
// are "5", and a NaN is missing, as is a feature that is not there, or has no list. A list without values is
// a fault, or missing where the config says what becomes of missing values. The first record that Next()
// gives is the names. Damage to the file, which the checksums tell, ends the reading. Errors are UserErrors:
// "file, record 3 at byte 38: what is wrong; rule". Owner: the reader of the file. Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/input/csv_reader.h"
#include "trainer/rows/example_fields.h"

namespace dtrain {

// ExampleRules: what records are read for. Plain data.
struct ExampleRules {
  // Names of columns that are there in any case, such as those of a model or of the first file.
  std::vector<std::string> names;
  std::vector<std::string> whole;  // features whose lists are one column, however long they are
  bool all_known = false;          // a feature that is no column is a fault; else it is left out
  bool empty_is_gap = false;       // a list without values is missing
  bool waits = true;               // for the first records that say the columns; false: for the first alone
};

class ExampleReader : public CsvReader {
 public:
  // Returns those of `names` that are features of a record, or values of one, such as x[3]. Reads no further
  // than to the record where all were found.
  static std::vector<std::string> NamesIn(std::unique_ptr<InputBytes> file,
                                          const std::vector<std::string>& names);

  // The records say the names of columns that `rules` lack.
  ExampleReader(std::unique_ptr<InputBytes> file, const ExampleRules& rules);

  bool names_columns() const override { return true; }
  // Whether a column is a feature whose lists have different lengths: it can be left out alone.
  bool Varies(size_t column) const { return KeyOf(column).varies; }
  void Take(int64_t column, bool as_number) override;
  void TakeList(int64_t column, bool as_number) override;
  bool ReadList(int64_t column, char separator,
                const std::function<void(const CsvField&)>& on_value) const override;
  void Begin(const CsvDialect& /*dialect*/) override { is_begun_ = false; }  // the names come again
  bool Next() override;
  bool NextText(std::string_view* text) override;
  void SkipFault() override {}  // the reader is behind the record
  bool HasWholeLine() const override;

 private:
  class KeyFinder;
  enum class Taken : uint8_t { kNot, kNumber, kText };

  // Key: a feature. Its values are in the columns from `first` on.
  struct Key {
    // The first bytes of its entry, and which bits of them are the same in each entry of less than 128 bytes.
    std::array<char, 16> begin{}, mask{};
    uint64_t head = 0;                // the bytes between its name and one value, if that is of 0 bytes
    Key* next = nullptr;              // that comes behind it, mostly
    ListKind kind = ListKind::kNone;  // kNone: any
    size_t first = 0;
    size_t count = 1;
    bool varies = false;  // the first records have lists of different lengths
    bool is_taken = true;
    bool is_list = false;   // ReadList() reads `list`
    std::string_view list;  // of the last record that has one
    std::string name;
  };
  static constexpr int64_t kMaxData = kMaxRecordBytes - (1 << 10);

  void ReadHeader();
  bool FindRecord(bool checks_data, std::string_view* data);
  const Key& KeyOf(size_t column) const;
  static Key* ExpectedKey(const Key& last, std::string_view entries);
  Key* FindKey(std::string_view name);
  void ReadExample(std::string_view data);
  size_t ReadValue(const Key& key, std::string_view entries);
  bool ReadValues(const ExampleFeature& feature, const Key& key);
  void CheckKind(const ExampleFeature& feature, const Key& key) const;
  [[noreturn]] void ThrowDamaged(const Key& key) const;
  void Put(size_t column, std::string_view text);
  template <typename Number>
  void Put(size_t column, Number number);
  template <typename Number>
  static void SetNumber(Number number, Taken taken, std::array<char, 24>* digits, CsvField* field);
  [[noreturn]] void Throw(const std::string& text) const;

  const ExampleRules rules_;
  std::vector<Key> keys_;                                // in the order of their columns
  std::unordered_map<std::string_view, size_t> number_;  // of a key, by name
  std::vector<std::string> names_;                       // of the columns
  std::vector<Taken> taken_;                             // by column
  bool takes_all_ = true;                                // no column was taken yet
  Key first_;                                            // its next is the first one of a record
  std::vector<std::array<char, 24>> digits_;             // the texts of numbers, by column
  bool is_empty_ = false;                                // the file has no record
  bool is_begun_ = false;                                // the names were given
  bool has_first_ = false;                               // the first record is whole
  TextPlace place_{1, 0, true};                          // of the last record
};

}  // namespace dtrain
