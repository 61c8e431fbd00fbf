// HashedColumn: numbers for the texts of one column whose texts are too many to be listed. Of two texts that
// get the same number the model makes no difference; data.hash_bits more make that rarer.
//   number of a text = low data.hash_bits bits of XXH3-64(text, seed XXH3-64(name of the column))
// The seed keeps equal texts of two columns apart. Owner: a parser. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

// The low `bits` bits, 1 to 64.
constexpr uint64_t LowBits(int64_t bits) { return UINT64_MAX >> (64 - bits); }

class HashedColumn {
 public:
  HashedColumn(std::string_view name, int64_t bits);
  uint64_t NumberOf(std::string_view text) const;

 private:
  uint64_t seed_;
  uint64_t mask_;
};

// The rule that a feature breaks whose number is not below `inputs`, with the remedy. `mask`: LowBits().
std::string BeyondInputsRule(uint64_t number, uint64_t inputs, uint64_t mask);

}  // namespace dtrain
