// ParameterShard: one contiguous range of the model's parameters on one ps.
// Owner: PsServer. Thread: the ps loop only, hence no lock.
// Invariant: version() equals the number of gradients applied since the initial values.
// A version that was lent to a reply is never written again: the next update goes to another buffer
// while that one is out, and in place otherwise. So a reply costs no copy.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

// The checksum of the rows of one variable that a ps owns.
struct PartChecksum {
  std::string name;
  int64_t first_row = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C
};

class ParameterShard {
 public:
  ParameterShard(const Config& config, const Layout& layout, int ps_index);

  // Fills the range with initial values; once: later calls change nothing.
  void Initialise();
  bool initialised() const { return initialised_; }

  size_t bytes() const { return static_cast<size_t>(range_.size()) * sizeof(float); }
  uint64_t version() const { return version_; }

  // One gradient of exactly bytes() bytes, at any alignment.
  void Apply(net::TensorView gradient);

  // The current version, lent; to be sent exactly once.
  net::LentBytes Lend() const { return current().Lend(0, bytes()); }
  // xxh3 of the current version, made when the version was; 0 unless net.checksum.
  uint64_t checksum() const { return checksum_; }

  std::vector<PartChecksum> PartChecksums() const;

 private:
  const net::LentBuffer& current() const { return buffers_[current_]; }
  size_t FreeBuffer();  // one that nobody reads: the current one where possible
  void Checksum();

  const Config& config_;
  const Layout& layout_;
  const int ps_index_;
  const Range range_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<net::LentBuffer> buffers_;  // bounded by the replies that can be out, plus one
  size_t current_ = 0;
  uint64_t version_ = 0;
  uint64_t checksum_ = 0;
  bool initialised_ = false;
};

}  // namespace dtrain
