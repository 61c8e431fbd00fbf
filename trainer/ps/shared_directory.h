// SharedDirectory: with checkpoint.writer: ps, the proof that checkpoint.dir is one directory that all ps
// see. ps 0 has a temporary save there for as long as it serves, whose name only its run has, and every
// other ps writes a file into it before it says that it is ready.
// Owner: PsServer on ps 0, Uplink elsewhere. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"

namespace dtrain {

inline bool PsWrite(const Config& config) {
  return config.checkpoint.writer == CheckpointWriter::kPs && !config.checkpoint.dir.empty();
}

// ps 0: prepares the directory and shows it to the others; what shows it goes with the object. UserError
// where nothing can be written there, or, of a run that `begins`, where another run does.
std::unique_ptr<CheckpointDirectory> ShowSharedDirectory(const Config& config, uint64_t run_id, bool begins);

// Another ps.
class SharedDirectory {
 public:
  explicit SharedDirectory(const Config& config) : config_(config) {}
  // Whether it is proven for this run; tries again at each call. UserError when it is not in a few seconds.
  bool Proven(TaskId self, uint64_t run_id);

 private:
  const Config& config_;
  uint64_t run_id_ = 0;
  bool proven_ = false;  // for that run
  TimePoint asked_;      // first
};

}  // namespace dtrain
