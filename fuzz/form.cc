// The form of a worker's data, as its messages tell it: bounded, and the same when it is told on.
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/peer/form_message.h"

namespace dtrain::fuzz {
namespace {

// Any Ready that the codec lets through.
int FuzzOne(const uint8_t* data, size_t size) {
  net::Message message;
  message.header = net::Frame::Copy(data, size);
  const wire::Envelope* const envelope = net::Decode(message);
  const wire::Ready* const ready = envelope == nullptr ? nullptr : envelope->body_as_Ready();
  if (ready == nullptr || ready->data() == nullptr) return 0;
  const DataFacts facts = DecodeFacts(*ready->data());
  if (!facts.form) return 0;
  Require(FormBytes(*facts.form) <= kMaxFormBytes, "a form that was taken is of bounded size");
  flatbuffers::FlatBufferBuilder builder;
  Require(!EncodeFacts(facts, builder).IsNull(), "a form that was taken can be told on");
  return 0;
}

const AddTarget added("form", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
