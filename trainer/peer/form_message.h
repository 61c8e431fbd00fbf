// The form of the data (trainer/data/input_form.h) in a message: the chief tells it to ps 0, which has no
// data, tells the workers by which scale the run goes and, with checkpoint.writer: ps, writes it into
// checkpoints. Thread: any; free functions.
#pragma once

#include <cstddef>
#include <optional>

#include "net/codec.h"
#include "trainer/data/input_form.h"

namespace dtrain {

// Of all names and numbers of a form that travels: it shares a header with a message's other fields.
constexpr size_t kMostFormBytes = 256 * 1024;

// What `form` comes to in a message, at the most.
size_t FormBytes(const InputForm& form);
// 0: it is more than kMostFormBytes.
flatbuffers::Offset<wire::InputForm> EncodeForm(const InputForm& form,
                                                flatbuffers::FlatBufferBuilder& builder);
// Unset: what the peer says is none, or refers to more than kMostFormBytes.
std::optional<InputForm> DecodeForm(const wire::InputForm& said);

}  // namespace dtrain
