// RangeLoader: with checkpoint.writer: ps, reads a ps's own range of a checkpoint from checkpoint.dir, some
// of it at each turn of the ps loop, so that the ps is heard meanwhile. Each byte that is read is verified;
// all ps together read every byte.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/channel.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/pieces.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/model/layout.h"
#include "trainer/ps/parameter_shard.h"

namespace dtrain {

class RangeLoader {
 public:
  // Who asks, and the number of the request.
  struct Question {
    net::NodeId from = 0;
    uint64_t request = 0;
    bool operator==(const Question& other) const { return from == other.from && request == other.request; }
  };
  struct Outcome {
    std::string error;  // why the range could not be loaded
    bool misfit = false;
    int64_t step = 0;
    std::string positions;
    std::optional<InputForm> inputs;  // of ps 0; unset: the checkpoint does not have it
  };

  RangeLoader(const Config& config, const Layout& layout, int ps, ParameterShard& shard);

  // `name`: of a checkpoint in checkpoint.dir, or checkpoint.resume as it is here; nothing else is opened.
  // What was begun before is dropped; the same question again changes nothing.
  void Begin(const Question& question, const std::string& name);
  bool busy() const { return reader_ != nullptr; }
  // Loads for some milliseconds. True once, when it has ended.
  bool Turn();
  const Question& question() const { return question_; }
  // Of the question; unset: not yet.
  const std::optional<Outcome>& outcome() const { return outcome_; }

 private:
  void Open(const std::string& name);
  void LoadNext();
  template <typename Work>
  void Guarded(Work&& work);

  const Config& config_;
  const Layout& layout_;
  const int ps_;
  ParameterShard& shard_;
  const std::vector<std::string> slots_;  // the optimizer's
  Question question_;
  std::unique_ptr<CheckpointReader> reader_;  // while it loads
  std::vector<Piece> pieces_;
  size_t next_ = 0;
  std::vector<float> values_;
  std::optional<Outcome> outcome_;
};

}  // namespace dtrain
