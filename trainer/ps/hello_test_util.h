// HelloMessage: the Hello of a task to a ps.
#pragma once

#include <utility>
#include <vector>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"

namespace dtrain {

class HelloMessage {
 public:
  HelloMessage(const Config& config, wire::Role role, uint32_t index, uint32_t ps_index = 0) {
    flatbuffers::FlatBufferBuilder& b = encoder_.Begin();
    std::vector<flatbuffers::Offset<wire::Setting>> settings;
    for (const auto& [key, value] : RunSettings(config)) {
      settings.push_back(wire::CreateSetting(b, b.CreateString(key), b.CreateString(value)));
    }
    const auto dir = config.checkpoint.dir.empty() ? 0 : b.CreateString(config.checkpoint.dir);
    message_ =
        encoder_.Finish({}, wire::CreateHello(b, net::kProtocol, role, index, ps_index, b.CreateString("a"),
                                              b.CreateString("host, pid 7"), b.CreateString("1"),
                                              b.CreateVector(settings), 0, 0, 0, dir));
  }
  const wire::Hello& get() const { return *net::Decode(message_)->body_as_Hello(); }
  net::Message Take() { return std::move(message_); }

 private:
  net::Encoder encoder_;
  net::Message message_;
};

}  // namespace dtrain
