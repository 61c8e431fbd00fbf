#include "trainer/result/verdict.h"

#include <fmt/core.h>

#include <cmath>

#include "base/printable.h"

namespace dtrain {
namespace {

constexpr size_t kMaxName = 40;  // of a class, in bytes

// Returns "42 % below" or "no better than".
std::string Against(double figure, double base) {
  const double percent = std::floor(100 * (1 - figure / base));
  return percent >= 1 ? fmt::format("{:.0f} % below", percent) : "no better than";
}

std::string AccuracyLine(const std::string& name, const EvaluationFigures& figures) {
  std::string line = fmt::format("{}: accuracy {:.4f}", name, *figures.accuracy);
  if (figures.base_accuracy && figures.base_class) {
    line += fmt::format("; always \"{}\" gives {:.4f}", Printable(*figures.base_class, kMaxName),
                        *figures.base_accuracy);
  }
  if (!figures.log_loss && figures.loss) line += fmt::format(", loss {:.6g}", *figures.loss);
  return line;
}

std::string LogLossLine(const EvaluationFigures& figures) {
  if (!figures.log_loss) return "";
  if (!figures.base_log_loss) return fmt::format("  log loss {:.6g}", *figures.log_loss);
  return fmt::format("  log loss {:.6g}, {} the {:.6g} of the shares of the classes alone", *figures.log_loss,
                     Against(*figures.log_loss, *figures.base_log_loss), *figures.base_log_loss);
}

std::string RankingLine(const EvaluationFigures& figures) {
  std::string line;
  if (figures.auc) line += fmt::format("  AUC {:.4f} (chance: 0.5)", *figures.auc);
  // Of several classes it is a mean, and so would its chance be.
  if (figures.auc && figures.average_precision && figures.positive_share) {
    line += fmt::format(", average precision {:.4f} (chance: {:.4f})", *figures.average_precision,
                        *figures.positive_share);
  }
  if (figures.calibration) {
    line += fmt::format("{}calibration {:.3f}", line.empty() ? "  " : ", ", *figures.calibration);
  }
  return line;
}

std::string RmseLine(const std::string& name, const EvaluationFigures& figures) {
  std::string line = fmt::format("{}: RMSE {:.6g}", name, *figures.rmse);
  if (figures.base_rmse) line += fmt::format("; always the mean gives {:.6g}", *figures.base_rmse);
  if (!figures.r2) return line;
  const double percent = std::floor(100 * *figures.r2);
  if (percent < 1) return line + fmt::format(": no better than the mean (R2 {:.4f})", *figures.r2);
  return line + fmt::format(": {:.0f} % of the variance is explained (R2 {:.4f})", percent, *figures.r2);
}

std::string MaeLine(const EvaluationFigures& figures) {
  if (!figures.mae) return "";
  const std::string base =
      figures.base_mae ? fmt::format("; always the mean gives {:.6g}", *figures.base_mae) : "";
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
    add(fmt::format("{}: loss {:.6g}", name, *figures.loss));
  } else if (figures.rows) {
    add(fmt::format("{}: no figures: the rows weigh nothing, or the outputs are not finite", name));
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
