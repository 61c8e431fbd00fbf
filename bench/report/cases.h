// What the report measures. Each case runs dtrain and its limit in turns, round by round. Many short turns:
// with few long ones, a machine that others use too is another one in the second half of a round. Cases keep
// a reference to the settings. They throw std::runtime_error where something cannot be run.
#pragma once

#include <string>
#include <vector>

#include "bench/report/row.h"

namespace dtrain::bench {

struct Settings {
  int rounds = 15;
  double seconds = 1.2;  // how long one side of a round is to take
  std::string bin;       // Bazel's directory of binaries
  std::string data;      // the directory with mnist/; empty: digits are drawn instead
  std::string scratch;   // a directory for what is written meanwhile

  std::string Program(const std::string& label) const { return bin + "/" + label; }
};

std::vector<Case> TrainingCases(const Settings& settings);    // global steps per second, and threads
std::vector<Case> StreamCases(const Settings& settings);      // many parameters
std::vector<Case> FootprintCases(const Settings& settings);   // start-up time and memory
std::vector<Case> CheckpointCases(const Settings& settings);  // 1 GiB of parameters saved while they train
std::vector<Case> KernelCases(const Settings& settings);      // operations and messages

}  // namespace dtrain::bench
