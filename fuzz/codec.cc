// Frames: each is refused, or read in full without leaving its bytes.
#define FAIL(text) ::dtrain::fuzz::Require(false, text)
#include "net/codec.h"
#include "fuzz/target.h"
#include "net/codec_test_util.h"

namespace dtrain::fuzz {
namespace {

// The first two bytes say how many of the last bytes are the payload frame.
int FuzzOne(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t payload = std::min<size_t>(data[0] | data[1] << 8, size - 2);
  net::Message message;
  message.header = net::Frame::Copy(data + 2, size - 2 - payload);
  message.payload = net::Frame::Copy(data + size - payload, payload);
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr) return 0;
  volatile uint64_t sum = net::Walk(message, *envelope);
  static_cast<void>(sum);
  return 0;
}

const AddTarget added("codec", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
