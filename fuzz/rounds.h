// Rounds: runs a target without a fuzzer: over its corpus, then over inputs that are made of it by chance and
// are the same each time. Thread: one.
#pragma once

#include <cstdint>
#include <string>

#include "fuzz/target.h"

namespace dtrain::fuzz {

struct RoundsOptions {
  uint64_t runs = 1000;       // by chance
  uint64_t seed = 0;          // of them
  std::string corpus;         // the directory with one directory for each target
  std::string keep = "/tmp";  // where the input of a crash is written
};

// Runs one input, in memory of exactly its size.
void RunOne(const Target& target, const std::string& input);

// Returns if nothing was found. A finding ends the process, and its input is kept.
void RunRounds(const Target& target, const RoundsOptions& options);

}  // namespace dtrain::fuzz
