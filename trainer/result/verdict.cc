#include "trainer/result/verdict.h"

#include <fmt/core.h>

#include <cmath>

#include "base/names.h"
#include "base/printable.h"

namespace dtrain {
namespace {

constexpr size_t kMaxName = 40;  // of a class, in bytes
constexpr char kMean[] = "the mean";

// Returns "42 % below that of the mean (8)", or "no better than that of the mean (8)".
std::string Beside(double figure, double base, const char* of) {
  const double percent = 100 * (1 - figure / base);
  return fmt::format("{} that of {} ({:.6g})",
                     percent >= 1 ? fmt::format("{:.0f} % below", percent) : "no better than", of, base);
}

std::string Named(const std::string& name, const EvaluationFigures& figures) {
  return figures.rows ? fmt::format("{} ({}): ", name, Plural(*figures.rows, "row")) : name + ": ";
}

std::string AccuracyLine(const std::string& name, const EvaluationFigures& figures) {
  std::string line = Named(name, figures) + fmt::format("accuracy {:.4f}", *figures.accuracy);
  if (figures.base_accuracy && figures.base_class) {
    const bool better = *figures.accuracy > *figures.base_accuracy;
    line += fmt::format(", {} always \"{}\" ({:.4f})", better ? "better than" : "no better than",
                        Printable(*figures.base_class, kMaxName), *figures.base_accuracy);
  }
  if (!figures.log_loss && figures.loss) line += fmt::format(", loss {:.6g}", *figures.loss);
  return line;
}

std::string LogLossLine(const EvaluationFigures& figures) {
  if (!figures.log_loss) return "";
  const std::string line = fmt::format("  log loss {:.6g}", *figures.log_loss);
  if (!figures.base_log_loss) return line;
  return line + ", " + Beside(*figures.log_loss, *figures.base_log_loss, "the class shares alone");
}

std::string RankingLine(const EvaluationFigures& figures) {
  std::string line;
  if (figures.auc) line += fmt::format("  AUC {:.4f} (chance: 0.5)", *figures.auc);
  // With several classes it is a mean, and so would its chance be.
  if (figures.auc && figures.average_precision && figures.positive_share) {
    line += fmt::format(", average precision {:.4f} (chance: {:.4f})", *figures.average_precision,
                        *figures.positive_share);
  }
  if (figures.calibration) {
    line +=
        fmt::format("{}calibration {:.3f} (1 is right)", line.empty() ? "  " : ", ", *figures.calibration);
  }
  return line;
}

std::string RmseLine(const std::string& name, const EvaluationFigures& figures) {
  std::string line = Named(name, figures) + fmt::format("RMSE {:.6g}", *figures.rmse);
  if (figures.base_rmse) line += ", " + Beside(*figures.rmse, *figures.base_rmse, kMean);
  if (!figures.r2) return line;
  return line + fmt::format("; R2 {:.4f}: {:.0f} % of the variance is explained", *figures.r2,
                            std::fmax(0, 100 * *figures.r2));
}

std::string MaeLine(const EvaluationFigures& figures) {
  if (!figures.mae) return "";
  const std::string base = figures.base_mae ? ", " + Beside(*figures.mae, *figures.base_mae, kMean) : "";
  return fmt::format("  MAE {:.6g}{}", *figures.mae, base);
}

}  // namespace

std::vector<std::string> VerdictLines(const std::string& name, const EvaluationFigures& figures) {
  std::vector<std::string> lines;
  const auto add = [&](std::string line) {
    if (!line.empty()) lines.push_back(std::move(line));
  };
  if (figures.accuracy) {
    add(AccuracyLine(name, figures));
    add(LogLossLine(figures));
    add(RankingLine(figures));
  } else if (figures.rmse) {
    add(RmseLine(name, figures));
    add(MaeLine(figures));
  } else if (figures.loss) {
    add(Named(name, figures) + fmt::format("loss {:.6g}", *figures.loss));
  } else if (figures.rows) {
    add(Named(name, figures) + "no figures: the rows weigh nothing, or the outputs are not finite");
  }
  return lines;
}

std::string ClassWeightsLine(const DataConfig& data) {
  if (data.class_weights.empty()) return "";
  return "data.class_weights: the probabilities are those of the reweighted rows, too large for classes that "
         "weigh more, so log loss and calibration are wrong; the order of the rows stays right, and with it "
         "AUC and average precision";
}

}  // namespace dtrain
