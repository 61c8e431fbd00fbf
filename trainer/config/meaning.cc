#include "trainer/config/meaning.h"

#include <fmt/format.h>

#include "trainer/config/fields.h"

namespace dtrain {

std::optional<std::string> OtherMeaning(const Config& saved, const Config& config) {
  for (const char* key : {"model.kind", "model.activation", "data.scale"}) {
    const Field& field = *FindField(key);
    const Value then = field.get(saved), now = field.get(config);
    if (now == then) continue;
    return fmt::format("{} = {}; must be {}", key, std::get<std::string>(now), std::get<std::string>(then));
  }
  return std::nullopt;
}

}  // namespace dtrain
