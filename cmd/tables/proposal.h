// Proposal: a config that trains on a table, made from what a first look at the table has found. Thread: any;
// plain data and free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/tables/model_plan.h"
#include "trainer/survey/sparse_profile.h"
#include "trainer/survey/table_profile.h"

namespace dtrain {

struct Proposal {
  std::string yaml;                // a whole config file
  std::vector<std::string> notes;  // what the person should know about it, one sentence or two each
};

// TestTable: a table with other rows of the same kind, to measure the model on.
struct TestTable {
  TableProfile profile;
  std::string path;  // as the config is to name it
};

// `path` is the table's path as the config is to name it. With a test table no rows are held out. Throws
// UserError if the table cannot be trained on, or if the test table needs other keys than it, with the
// reason.
Proposal ProposeConfig(const TableProfile& table, const LabelChoice& label, const std::string& path,
                       const TestTable* test = nullptr);

// The same for sparse rows, which have no columns to choose a label among. `test_path`: empty if there are
// none to test with.
Proposal ProposeSparseConfig(const SparseProfile& rows, const std::string& path,
                             const SparseProfile& test = {}, const std::string& test_path = "");

// Returns the file's name without directory and endings, with only letters, digits, "-" and "_": "titanic".
std::string TableName(const std::string& path);

}  // namespace dtrain
