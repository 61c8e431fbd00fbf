// HashedCsvFile: an open table of which some columns have too many texts for a feature each (data.hash): its
// rows are sparse. A feature of such a column is the hash of the column's name and the text
// (hashed_feature.h) with value 1, and a missing value is a text of its own. Of any other column it is the
// hash of the name, with the number as value; with data.by_column it is one behind all hashes, scaled as
// data.numbers says. A column without a name is named by its number, from 0. Owner: who reads the rows.
// Thread: one. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/hashed_feature.h"

namespace dtrain {

class HashedCsvFile : public CsvFile {
 public:
  // `columns` are those of this file and `train` those of data.train, by which data.hash counts; their inputs
  // belong together. The others: as for CsvFile.
  HashedCsvFile(const DataConfig& data, const std::string& section, bool header,
                std::unique_ptr<CsvReader> reader, const CsvColumns& columns, const CsvColumns& train,
                SkippedRows* skipped);

  int64_t inputs() const override { return inputs_; }
  const CsvColumns& columns() const override { return columns_; }

 private:
  // A column whose texts are hashed.
  struct Hashed {
    int64_t column = 0;
    HashedColumn texts;
  };
  // Which inputs of a table become what.
  struct Split {
    CsvLayout numbers;
    std::vector<uint64_t> ids;  // of `numbers`
    std::vector<Hashed> hashed;
    int64_t inputs = 0;
  };

  static Split SplitOf(const DataConfig& data, const std::string& section, bool header,
                       const CsvReader& reader, const CsvColumns& columns, const CsvColumns& train);
  HashedCsvFile(const DataConfig& data, std::unique_ptr<CsvReader> reader, Split split,
                const CsvColumns& columns, SkippedRows* skipped);
  Read ReadRow(ParsedRows* rows, RowLabels* labels) override;

  const CsvColumns columns_;
  const int64_t inputs_;
  const std::vector<uint64_t> number_ids_;
  const std::vector<Hashed> hashed_;
  ParsedRows numbers_;  // of the row that is read, and its weight
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
};

}  // namespace dtrain
