// DataFacts: what a worker that has read its data tells ps 0, which has none: ps 0 writes the form of the
// data (trainer/data/files/input_form.h) into checkpoints and tells all workers by which scale the run goes.
// Thread: any; plain values and free functions.
#pragma once

#include <cstddef>
#include <optional>

#include "net/codec.h"
#include "trainer/data/files/input_form.h"

namespace dtrain {

// Of all names and numbers of a form that travels: it shares a header with a message's other fields.
constexpr size_t kMaxFormBytes = 256 * 1024;

// What `form` comes to in a message, at the most.
size_t FormBytes(const InputForm& form);
// 0: it is more than kMaxFormBytes.
flatbuffers::Offset<wire::InputForm> EncodeForm(const InputForm& form,
                                                flatbuffers::FlatBufferBuilder& builder);
// Unset: what the peer says is none, or refers to more than kMaxFormBytes.
std::optional<InputForm> DecodeForm(const wire::InputForm& said);

struct DataFacts {
  std::optional<InputForm> form;  // unset: it is too long for a message
  uint64_t scale = 0;             // ScaleChecksum() of it
  std::optional<int64_t> rows;    // of data.train, before the hold-out; unset: without end
  bool read = false;              // the rows are read, not made by a formula
  uint32_t labels = 0;            // with `read`: CRC-32 of their labels
  bool has_test = false;
  bool has_validation = false;
};

// XXH3-64 of the numbers; 0: not scaled.
uint64_t ScaleChecksum(const FittedScale& scale);
flatbuffers::Offset<wire::DataFacts> EncodeFacts(const DataFacts& facts,
                                                 flatbuffers::FlatBufferBuilder& builder);
// A form that is none is left out.
DataFacts DecodeFacts(const wire::DataFacts& said);

}  // namespace dtrain
