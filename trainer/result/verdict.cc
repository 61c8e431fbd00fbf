#include "trainer/result/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/names.h"
#include "base/printable.h"
#include "trainer/config/data_config.h"

namespace dtrain {
namespace {

constexpr size_t kMaxName = 40;  // of a class, in bytes
constexpr char kMean[] = "always the mean";

// Returns ", 42 % below that of always the mean (8)", or ", no better than that of always the mean (8)";
// empty if there is no error to be below.
std::string Beside(double figure, const std::optional<double>& base, const char* of) {
  if (!base || *base == 0) return "";
  const double percent = 100 * (1 - figure / *base);
  const std::string better = percent >= 1  ? fmt::format("{:.0f} % below", percent)
                             : percent > 0 ? "less than 1 % below"
                                           : "no better than";
  return fmt::format(", {} that of {} ({:.6g})", better, of, *base);
}

std::string AccuracyText(double accuracy, std::optional<double> threshold) {
  return fmt::format("accuracy {}{:.4f}", threshold ? fmt::format("with --threshold {:g}: ", *threshold) : "",
                     accuracy);
}

std::vector<std::string> ClassLines(const EvaluationFigures& figures, std::optional<double> threshold) {
  std::vector<std::string> lines = {AccuracyText(*figures.accuracy, threshold)}, ranking, of_positive;
  if (figures.base_accuracy && figures.base_class) {
    const bool better = *figures.accuracy > *figures.base_accuracy;
    lines[0] += fmt::format(", {} always \"{}\" ({:.4f})", better ? "better than" : "no better than",
                            Printable(*figures.base_class, kMaxName), *figures.base_accuracy);
  }
  if (figures.log_loss) {
    lines.push_back(fmt::format("log loss {:.6g}", *figures.log_loss) +
                    Beside(*figures.log_loss, figures.base_log_loss, "always the class shares"));
  } else if (figures.loss) {
    lines[0] += fmt::format(", loss {:.6g}", *figures.loss);
  }
  if (figures.auc) ranking.push_back(fmt::format("AUC {:.4f} (chance: 0.5)", *figures.auc));
  // With several classes it is a mean, and so would its chance be.
  if (figures.auc && figures.average_precision && figures.positive_share) {
    of_positive.push_back(fmt::format("average precision {:.4f} (chance: {:.4f})", *figures.average_precision,
                                      *figures.positive_share));
  }
  if (figures.calibration) {
    of_positive.push_back(
        fmt::format("calibration {:.3f} (predicted / observed; 1 is right)", *figures.calibration));
  }
  if (!of_positive.empty()) {
    ranking.push_back(fmt::format("of class \"{}\": {}",
                                  Printable(figures.positive_class.value_or("1"), kMaxName),
                                  fmt::join(of_positive, ", ")));
  }
  if (!ranking.empty()) lines.push_back(fmt::format("{}", fmt::join(ranking, ", ")));
  return lines;
}

std::vector<std::string> NumberLines(const EvaluationFigures& figures) {
  std::vector<std::string> lines = {fmt::format("RMSE {:.6g}", *figures.rmse) +
                                    Beside(*figures.rmse, figures.base_rmse, kMean)};
  if (figures.r2) {
    lines[0] += fmt::format("; R2 {:.4f}: {:.0f} % of the variance is explained", *figures.r2,
                            std::fmax(0, 100 * *figures.r2));
  } else if (figures.base_rmse == 0) {
    lines[0] += "; all of these targets are equal, so R2 has no meaning";
  }
  if (figures.deviance) {
    lines.push_back(fmt::format("deviance {:.6g}", *figures.deviance) +
                    Beside(*figures.deviance, figures.base_deviance, "always the best constant"));
    if (figures.d2) lines.back() += fmt::format("; D2 {:.4f}", *figures.d2);
    if (figures.loss) lines.back() += fmt::format(", loss {:.6g}", *figures.loss);
    std::rotate(lines.begin(), lines.end() - 1, lines.end());
  }
  if (figures.share_below) {
    lines.push_back(
        fmt::format("{:.2f} % of the labels are at or below their prediction", 100 * *figures.share_below));
  }
  if (figures.mae) {
    lines.push_back(fmt::format("MAE {:.6g}", *figures.mae) + Beside(*figures.mae, figures.base_mae, kMean));
  }
  return lines;
}

}  // namespace

std::vector<std::string> VerdictLines(const std::string& name, const EvaluationFigures& figures,
                                      std::optional<double> threshold) {
  std::vector<std::string> lines;
  if (figures.base_class && figures.base_accuracy.value_or(0) >= 1) {
    const std::string of_threshold =
        threshold && figures.accuracy ? fmt::format(" ({})", AccuracyText(*figures.accuracy, threshold)) : "";
    lines = {fmt::format("all of these rows are of class \"{}\", so no figure of theirs{} says anything; {}",
                         Printable(*figures.base_class, kMaxName), of_threshold,
                         name == "validation" ? "hold out others, such as data.validation_by: stratified"
                                              : "choose other rows")};
  } else if (figures.accuracy) {
    lines = ClassLines(figures, threshold);
  } else if (figures.rmse) {
    lines = NumberLines(figures);
  } else if (figures.loss) {
    lines = {fmt::format("loss {:.6g}", *figures.loss)};
  } else if (figures.rows) {
    lines = {"no figures: the rows weigh nothing, or the outputs are not finite"};
  } else {
    return {};
  }
  for (size_t i = 1; i < lines.size(); ++i) lines[i].insert(0, "  ");
  const std::string rows = figures.rows ? fmt::format(" ({})", Plural(*figures.rows, "row")) : "";
  lines[0].insert(0, fmt::format("{}{}: ", name, rows));
  return lines;
}

std::string ThresholdLine(const EvaluationFigures& figures) {
  const double share = figures.base_accuracy.value_or(0);
  if (!figures.thresholds || share <= kUnevenShare || share >= 1) return "";
  return "  with classes this uneven AUC says more than accuracy; dtrain eval lists precision and recall for "
         "each "
         "--threshold (now 0.5)";
}

std::string ClassWeightsLine(const DataConfig& data) {
  if (data.class_weights.empty()) return "";
  return "data.class_weights: the probabilities are those of the reweighted rows, too large for classes that "
         "weigh more, so log loss and calibration are wrong; the order of the rows stays right, and with it "
         "AUC and average precision";
}

}  // namespace dtrain
