// What a log or a message says of the columns and classes of the data.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/input_form.h"

namespace dtrain {

// "alba, grandis or media"; of more than 20 only so many, and how many more there are.
std::string ListNames(const std::vector<std::string>& names, const std::string& last_word);
// "3 classes: 0 = alba, 1 = grandis and 2 = media".
std::string ClassNamesText(const std::vector<std::string>& names);
// As its column is named, or where that has no name by its place in a row, from 1: "column 4".
std::string FeatureTitle(const InputForm& form, int64_t feature);
// "2 features: height and width". They have names.
std::string FeatureNamesText(const InputForm& form);

}  // namespace dtrain
