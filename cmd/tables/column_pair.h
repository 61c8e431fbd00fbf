// One column of a table and of its test table, which a config reads in the same way. Thread: any; free
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/survey/table_profile.h"

namespace dtrain {

// Returns how numbers or dates of the two are written differently: "day is written as DD.MM.YYYY, and in
// t.csv as MM/DD/YYYY"; empty: one config reads both. `there`: the column of `test`. `is_label`: numbers of
// both are no dates.
std::string WrittenUnlike(const TableProfile& table, size_t column, const TableProfile& test,
                          const ColumnProfile& there, bool is_label);

// Returns what is told of numbers without the unit that those of the other table have, and of numbers of
// another size altogether.
std::vector<std::string> UnitNotes(const TableProfile& table, size_t column, const TableProfile& test,
                                   const ColumnProfile& there);

// How many numbers of `there` are dates of the form of `here`.
int64_t DatesAs(const ColumnProfile& here, const ColumnProfile& there);

}  // namespace dtrain
