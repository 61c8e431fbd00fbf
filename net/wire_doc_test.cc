// docs/wire.md stays true: its example is what the encoder makes, and it names every kind, field and reason.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cctype>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "net/codec.h"

namespace dtrain::net {
namespace {

std::string HexDump(const Frame& frame) {
  std::string dump;
  for (size_t i = 0; i < frame.size(); ++i) {
    if (i % 16 == 0) dump += fmt::format("\n    {:04x} ", i);
    dump += fmt::format(" {:02x}", std::to_integer<unsigned>(frame.data()[i]));
  }
  return dump;
}

// The names before "name:type".
std::vector<std::string> FieldsOf(const std::string& schema) {
  const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  std::vector<std::string> fields;
  for (size_t colon = schema.find(':'); colon != std::string::npos; colon = schema.find(':', colon + 1)) {
    size_t begin = colon;
    while (begin > 0 && in_name(schema[begin - 1])) --begin;
    const char after = schema[colon + 1];
    if (begin < colon && (in_name(after) || after == '['))
      fields.push_back(schema.substr(begin, colon - begin));
  }
  REQUIRE(fields.size() > 40);
  return fields;
}

void CheckNamed(const std::string& document, const std::string& text) {
  CAPTURE(text);
  CHECK(document.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("wire.md: the worked example is the encoder's push of the gradient 0.5, -0.25") {
  const std::string document = testing::FileContent("docs/wire.md");
  Encoder encoder;
  const std::vector<float> gradient = {0.5f, -0.25f};
  const Message push = encoder.Push({0x1122334455667788, 0, 7}, 0, 100, 0,
                                    {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr});
  REQUIRE(push.payload.empty());
  CheckNamed(document, HexDump(push.header));
}

TEST_CASE("wire.md: every kind of message, every field and every reason of the schema is explained") {
  const std::string document = testing::FileContent("docs/wire.md");
  for (const std::string& field : FieldsOf(testing::FileContent("net/messages.fbs")))
    CheckNamed(document, "`" + field + "`");
  for (const wire::Body body : wire::EnumValuesBody()) {
    if (body != wire::Body::NONE) CheckNamed(document, fmt::format("| `{}` ", wire::EnumNameBody(body)));
  }
  for (const wire::Reason reason : wire::EnumValuesReason()) {
    CheckNamed(document, fmt::format("| {} `{}` |", static_cast<int>(reason), wire::EnumNameReason(reason)));
  }
  CheckNamed(document, fmt::format("protocol version is {}", kProtocol));
  CheckNamed(document, fmt::format("{} bytes", kInlineBytes));
}

}  // namespace dtrain::net
