// docs/wire.md stays true: its example is what the encoder makes, and it names every kind, field and reason.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "net/codec.h"

namespace dtrain::net {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string HexDump(const Frame& frame) {
  std::string dump;
  for (size_t i = 0; i < frame.size(); ++i) {
    if (i % 16 == 0) dump += fmt::format("\n    {:04x} ", i);
    dump += fmt::format(" {:02x}", std::to_integer<unsigned>(frame.data()[i]));
  }
  return dump;
}

void CheckNamed(const std::string& document, const std::string& text) {
  CAPTURE(text);
  CHECK(document.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("wire.md: the worked example is the encoder's push of the gradient 0.5, -0.25") {
  const std::string document = ReadFile("docs/wire.md");
  Encoder encoder;
  const std::vector<float> gradient = {0.5f, -0.25f};
  const Message push = encoder.Push({0x1122334455667788, 0, 7}, 0.75f, 100, 0,
                                    {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr});
  REQUIRE(push.payload.empty());
  CheckNamed(document, HexDump(push.header));
}

TEST_CASE("wire.md: every kind of message, every field and every reason of the schema is explained") {
  const std::string document = ReadFile("docs/wire.md");
  const std::string schema = ReadFile("net/messages.fbs");
  const std::regex field(R"((\w+):[\[\w])");
  for (auto match = std::sregex_iterator(schema.begin(), schema.end(), field);
       match != std::sregex_iterator(); ++match) {
    CheckNamed(document, "`" + (*match)[1].str());
  }
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
