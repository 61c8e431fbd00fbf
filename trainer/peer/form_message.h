// DataFacts: what a worker tells ps 0 about its data, because ps 0 has none. ps 0 writes the form of the data
// (trainer/batch/input_form.h) into checkpoints and tells all workers which scale the run uses.
// Thread: any; plain values and free functions.
#pragma once

#include <cstddef>
#include <optional>

#include "net/codec.h"
#include "trainer/batch/input_form.h"

namespace dtrain {

// The max size of the names and numbers of a form in a message; they share a header with other fields.
constexpr size_t kMaxFormBytes = 256 * 1024;

// An upper bound of the size of `form` in a message.
size_t FormBytes(const InputForm& form);
// 0: larger than kMaxFormBytes.
flatbuffers::Offset<wire::InputForm> EncodeForm(const InputForm& form,
                                                flatbuffers::FlatBufferBuilder& builder);
// Unset: malformed, or larger than kMaxFormBytes.
std::optional<InputForm> DecodeForm(const wire::InputForm& said);

// Returns the part of a form that rows are read with: the scale, the columns with the names of their
// features, and the classes.
InputForm FitOf(const InputForm& form);
inline bool IsFitted(const InputForm& form) {
  const bool has_columns = !form.columns.empty() && !HasHashedColumns(form);
  return !form.scale.shift.empty() || has_columns || !form.classes.empty();
}

struct DataFacts {
  std::optional<InputForm> form;  // unset: too long for a message
  uint64_t scale = 0;             // its ScaleChecksum()
  std::optional<int64_t> rows;    // of data.train, before the hold-out; unset: endless
  bool read = false;              // the rows are read, not made by a formula
  uint32_t labels = 0;            // with `read`: CRC-32 of the labels,
  uint64_t features = 0;          // and the checksum of the features, 0 if not known (DataFingerprint)
  bool has_test = false;
  bool has_validation = false;

  template <typename Archive>
  void State(Archive& archive) {
    archive(form, scale, rows, read, labels, features, has_test, has_validation);
  }
};

// XXH3-64 of the numbers; 0: not scaled.
uint64_t ScaleChecksum(const FittedScale& scale);
flatbuffers::Offset<wire::DataFacts> EncodeFacts(const DataFacts& facts,
                                                 flatbuffers::FlatBufferBuilder& builder);
// Leaves out a malformed form.
DataFacts DecodeFacts(const wire::DataFacts& said);

}  // namespace dtrain
