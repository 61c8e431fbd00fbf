#include "trainer/config/meaning.h"

#include <fmt/format.h>

#include "trainer/config/fields.h"

namespace dtrain {

std::optional<std::string> OtherMeaning(const Config& saved, const Config& config) {
  for (const char* key : {"model.kind", "model.activation", "data.scale"}) {
    const Field& field = *FindField(key);
    const Value now = field.get(config), then = field.get(saved);
    if (!Applies(field, saved) || now == then) continue;
    return fmt::format("{} = {}; must be {}", key, ValueText(field, now), ValueText(field, then));
  }
  return std::nullopt;
}

bool TakesPixels(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  return train.format == DataFormat::kIdx ||
         (train.format == DataFormat::kSynthetic && train.name == SyntheticName::kDigits);
}

}  // namespace dtrain
