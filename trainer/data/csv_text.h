// Texts of a CSV file that the program says again, in logs, checkpoints and JSON: names of columns and
// classes. Numbers and what is not read are not looked at. Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

#include "trainer/data/csv_reader.h"

namespace dtrain {

// Refuses a name that is not UTF-8: in an answer it would not be the file's any more, and two may become one.
void CheckName(const std::string& path, const CsvField& field);

// The texts of a header, whose names are all good.
std::vector<std::string> HeaderNames(const CsvReader& reader);

}  // namespace dtrain
