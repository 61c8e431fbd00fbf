// HashedColumn: numbers for the texts of one column whose texts are too many to be listed. Of two texts that
// get the same number the model makes no difference; data.hash_bits more make that rarer.
//   number of a text = low data.hash_bits bits of XXH3-64(text, seed XXH3-64(name of the column))
// The seed keeps equal texts of two columns apart. Where a model tells columns from each other
// (data.by_column), those of each column have numbers of their own. Owner: a parser. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "trainer/config/choices.h"

namespace dtrain {

// The low `bits` bits, 1 to 64.
constexpr uint64_t LowBits(int64_t bits) { return UINT64_MAX >> (64 - bits); }

class HashedColumn {
 public:
  // `first`: added to all numbers.
  HashedColumn(std::string_view name, int64_t bits, uint64_t first = 0);
  uint64_t NumberOf(std::string_view text) const;

 private:
  uint64_t seed_;
  uint64_t mask_;
  uint64_t first_;
};

// The features of a row whose model tells columns from each other: those of the first column of categories
// come first, each column has 2^bits of them, and behind them is one for each number.
inline uint64_t FirstOfColumn(int64_t column, int64_t bits) { return static_cast<uint64_t>(column) << bits; }
// The value of such a number (data.numbers).
float ScaledNumber(float number, NumberScale scale);

// NamedFeature: a feature of a row as the text that it was hashed from, with its column: "plan=pro", and of a
// number "age"; of vw "namespace^name", and of a pair "a^x*b^y".
struct NamedFeature {
  uint64_t id = 0;
  std::string name;
};

// NameWish: the features whose names are wanted. A name is made for these alone.
struct NameWish {
  bool all = false;
  std::unordered_set<uint64_t> ids;
  bool Has(uint64_t id) const { return all || ids.count(id) > 0; }
};

// The name of a text of a column; the empty one stands for a missing value.
std::string FeatureNameOf(std::string_view column, std::string_view text);

// The rule that a feature breaks whose number is not below `inputs`, with the remedy. `mask`: LowBits().
std::string BeyondInputsRule(uint64_t number, uint64_t inputs, uint64_t mask);

}  // namespace dtrain
