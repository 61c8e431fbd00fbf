#include "trainer/data/data_warnings.h"

#include "trainer/data/label_counts.h"
#include "trainer/data/rounded_features.h"
#include "trainer/data/unseen_classes.h"
#include "trainer/data/unused_outputs.h"

namespace dtrain {

std::vector<std::string> DataWarnings(const Config& config, const LoadedData& data) {
  const LabelCounts counts = CountLabels(data, config.data.validation);
  std::vector<std::string> warnings;
  for (const std::string& text :
       {UnusedOutputsText(config.model, data.form, counts), UnseenClassesText(config.data, data.form, counts),
        RoundedFeaturesText(config.data, data)}) {
    if (!text.empty()) warnings.push_back(text);
  }
  return warnings;
}

}  // namespace dtrain
