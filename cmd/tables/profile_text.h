// The profile of a table as people read it. Thread: any; free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/survey/table_profile.h"

namespace dtrain {

// How a delimiter is called by data.delimiter, and in a sentence: "bar", "bars".
struct DelimiterNames {
  const char *key, *many;
};
DelimiterNames NamesOf(char delimiter);

// Returns what the table is, and a line for each column: type, missing and distinct values, and which.
std::string ColumnsText(const TableProfile& table);

// Returns a line for each column that is read in a way of its own, by data.missing_values, data.number_format
// or data.dates, or that would be but for something to decide; empty if there are none. `label`: a column
// whose numbers are no dates.
std::string ReadingsText(const TableProfile& table, size_t label = SIZE_MAX);

// Returns a line for each kind of fault at which training would stop: its first place, the rule, and how many
// there are. Empty if there are none.
std::string FaultsText(const TableProfile& table);

// Throws UserError with these lines if a run would leave out most rows, and if there are none.
void CheckRows(const TableProfile& table);

// Returns a line for what may be wrong with the names of columns; empty if nothing is.
std::string HeaderDoubts(const TableProfile& table);

// Returns a line for each thing that looks other than it should; empty if nothing does.
std::string SuspectsText(const TableProfile& table);

}  // namespace dtrain
