// What a log or a message says of the columns and classes of the data.
// Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// "alba, grandis or media"; of more than 20 only so many, and how many more there are.
std::string ListNames(const std::vector<std::string>& names, const std::string& last_word);
// "3 classes: 0 = alba, 1 = grandis and 2 = media".
std::string ClassNamesText(const std::vector<std::string>& names);
// "2 features: height and width".
std::string FeatureNamesText(const std::vector<std::string>& names);

}  // namespace dtrain
