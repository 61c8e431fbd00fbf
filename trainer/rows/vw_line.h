// Lines of Vowpal Wabbit's text format:
//   [LABEL [WEIGHT]] ['TAG]|NAMESPACE[:WEIGHT] FEATURE[:VALUE] ... |NAMESPACE ...
// A feature's number is the one that Vowpal Wabbit gives it (--hash strings), in its low data.hash_bits bits:
//   - of a namespace the number that its name is, if that is digits alone, else Murmur3(name, 0); 0 for the
//     namespace without a name;
//   - of a feature the number that its name is plus that of the namespace, if the name is digits alone, else
//     Murmur3(name, namespace). With a text in place of a value it is that of the text, where the feature's
//     number stands for the namespace's, and its value is 1. Without a name (":0.5") it is that of the
//     namespace plus its place among such;
//   - of a pair (data.crosses) 16777619 times the first number, xor the second; its value is the product.
// Namespaces are told by their first letters in data.crosses, as in -q. "ab" and "ba" differ in the numbers
// of their pairs; of both "ab" is taken. A namespace with itself gives each pair of its features once, and
// each feature with itself. The letter : stands for all that begin in ASCII, so "::" has all pairs, the lower
// letter first. Features with value 0 are left out. Vowpal Wabbit's constant feature is not added: dtrain's
// models have a bias of their own. What Vowpal Wabbit reads with a warning, and mostly not as it was meant,
// is a fault here. Numbers are the nearest float32, which Vowpal Wabbit misses by up to some steps.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>

#include "trainer/config/choices.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {

// Throws UserError if data.crosses has other than pairs of letters.
std::unique_ptr<LineParser> MakeVwParser(const DataConfig& data, const LineRules& rules);

// Returns the letters that data.crosses names.
std::set<char> CrossedLetters(const DataConfig& data);
// Erases the letters that the names of a line's namespaces begin with; a blank is that of a namespace without
// a name.
void EraseLettersOf(std::string_view line, std::set<char>* letters);

// MurmurHash3 with 32 bits (Appleby, public domain).
uint32_t Murmur3(std::string_view bytes, uint32_t seed);

// A row has at most so many features, with its crosses. It bounds the memory that a line asks for.
constexpr size_t kMaxVwFeatures = size_t{1} << 20;

}  // namespace dtrain
