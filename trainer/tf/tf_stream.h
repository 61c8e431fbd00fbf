// TfStream: the values of one tensor in row-major order, a run at a time, so that a tensor of any size is
// read in little memory, and each of its slices from its begin to its end, however it is cut. The checksum of
// a slice is verified with its last value. Of V1 a slice is held whole, as its file has it. Errors are
// UserErrors, as TfCheckpoint's. Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/tf/tf_checkpoint.h"

namespace dtrain {

class TfStream {
 public:
  // Throws UserError for a tensor that is no reals, or cannot be read. Both outlive this.
  TfStream(const TfCheckpoint& checkpoint, const TfTensor& tensor);
  // Reads the next `count` values as float32; there are as many left.
  void Read(int64_t count, float* out);
  int64_t next() const { return next_; }  // the number of values that were read

 private:
  struct State {
    int64_t taken = 0;  // values of the piece
    uint32_t crc = 0;
    std::string bytes;  // of V1, all of them
  };

  void Take(size_t piece, int64_t count, float* out);
  void ReadValues(size_t piece, int64_t count, float* out);

  const TfCheckpoint& checkpoint_;
  const TfTensor& tensor_;
  std::vector<State> states_;   // of the tensor's pieces
  std::vector<float> scratch_;  // values of a piece that are no neighbours in the tensor
  size_t first_ = 0;            // all pieces before this one are done
  int64_t next_ = 0;
};

}  // namespace dtrain
