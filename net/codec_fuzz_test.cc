// Damaged and invented frames: each is refused, or read in full without leaving its bytes (run under ASan).
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "net/codec_test_util.h"

namespace dtrain::net {
namespace {

// Its header lies in memory of exactly its size, so that ASan finds a byte too far.
bool DecodeAndWalk(const std::string& header, const Frame& payload = Frame()) {
  const std::vector<char> exact(header.begin(), header.end());
  const Message message = {Frame::Lend(exact.data(), exact.size(), nullptr, nullptr), payload.Share()};
  const wire::Envelope* const envelope = Decode(message);
  if (envelope == nullptr) return false;
  volatile uint64_t sum = Walk(message, *envelope);
  (void)sum;
  return true;
}

std::vector<std::string> SampleHeaders() {
  std::vector<std::string> headers;
  for (const Message& message : SampleMessages()) headers.emplace_back(message.header.text());
  return headers;
}

}  // namespace

TEST_CASE("codec: a header cut short anywhere is refused or read within its bytes") {
  for (const std::string& header : SampleHeaders()) {
    CHECK(DecodeAndWalk(header));
    for (size_t size = 0; size < 8; ++size) CHECK_FALSE(DecodeAndWalk(header.substr(0, size)));
    for (size_t size = 8; size < header.size(); ++size) DecodeAndWalk(header.substr(0, size));
  }
}

TEST_CASE("codec: a header with one byte changed is refused or read within its bytes") {
  const Frame payload = Frame::Copy("payload!", 8);
  for (const std::string& header : SampleHeaders()) {
    for (size_t i = 0; i < header.size(); ++i) {
      for (const int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
        std::string damaged = header;
        damaged[i] = static_cast<char>(damaged[i] ^ change);
        DecodeAndWalk(damaged);
        DecodeAndWalk(damaged, payload);
      }
    }
  }
}

TEST_CASE("codec: random changes to real headers and random bytes are refused or read within their bytes") {
  const std::vector<std::string> headers = SampleHeaders();
  const CounterRandom random(20'260'131);
  int accepted = 0;
  for (uint64_t frame = 0; frame < 100'000; ++frame) {
    const CounterRandom stream = random.Stream(frame);
    std::string bytes = headers[stream.Below(0, headers.size())];
    const uint64_t kind = stream.Below(1, 4);
    if (kind == 0) bytes = bytes.substr(0, stream.Below(2, bytes.size() + 1));
    if (kind == 1) bytes += headers[stream.Below(2, headers.size())];
    const uint64_t changes = kind == 2 ? bytes.size() : 1 + stream.Below(3, 8);
    const uint64_t keep = kind == 2 ? 8 : 0;  // random bytes after a real beginning get further
    for (uint64_t i = 0; i < changes && bytes.size() > keep; ++i) {
      const uint64_t at = keep + stream.Below(10 + 2 * i, bytes.size() - keep);
      bytes[at] = static_cast<char>(stream.Bits(11 + 2 * i));
    }
    if (DecodeAndWalk(bytes)) ++accepted;
  }
  CHECK(accepted > 0);  // some changes only change values
  CHECK(accepted < 100'000);
}

TEST_CASE("codec: tables that refer to each other without end are refused") {
  // A list of 100,000 settings that are all the same table is small on the wire and large to read.
  flatbuffers::FlatBufferBuilder b;
  const std::vector<flatbuffers::Offset<wire::Setting>> settings(
      100'000, wire::CreateSettingDirect(b, "key", "value"));
  const auto hello = wire::CreateHelloDirect(b, 1, wire::Role::Worker, 0, 0, "", "", "", &settings);
  wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, wire::Body::Hello, hello.Union()));
  CHECK(b.GetSize() <= kMaxHeaderBytes);
  CHECK_FALSE(DecodeAndWalk(std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize())));
}

}  // namespace dtrain::net
