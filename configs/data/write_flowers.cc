// Writes flowers.csv to standard output: 50 flowers each of three species that do not exist, measured in cm.
// The measures of a species are independent and normal; media and grandis overlap, so that no model can be
// right about all of them.
#include <cstdio>

#include "base/random.h"

namespace dtrain {
namespace {

constexpr int kRows = 150;
constexpr int kSpecies = 3;
constexpr int kMeasures = 4;

struct Measure {
  double mean, deviation;
};
struct Species {
  const char* name;
  Measure measures[kMeasures];
};
constexpr Species kAll[kSpecies] = {
    {"media", {{5.9, 0.5}, {2.6, 0.3}, {3.9, 0.4}, {1.3, 0.2}}},
    {"alba", {{4.2, 0.4}, {2.9, 0.3}, {1.8, 0.25}, {0.6, 0.15}}},
    {"grandis", {{6.9, 0.6}, {3.0, 0.3}, {5.0, 0.5}, {1.75, 0.25}}},
};

void WriteFlowers() {
  const CounterRandom random(1);
  std::printf("leaf_length,leaf_width,petal_length,petal_width,species\n");
  for (int row = 0; row < kRows; ++row) {
    const Species& species = kAll[row % kSpecies];
    for (int i = 0; i < kMeasures; ++i) {
      const Measure& measure = species.measures[i];
      const auto counter = static_cast<uint64_t>(row * kMeasures + i);
      std::printf("%.1f,", measure.mean + measure.deviation * random.Normal(counter));
    }
    std::printf("%s\n", species.name);
  }
}

}  // namespace
}  // namespace dtrain

int main() { dtrain::WriteFlowers(); }
