// The version that the handshake and `dtrain --version` tell.
#pragma once

namespace dtrain {

constexpr char kVersion[] = "0.1.0";

}  // namespace dtrain
