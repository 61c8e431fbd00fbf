#include "trainer/result/run_summary.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "base/json.h"
#include "base/machine_memory.h"
#include "base/names.h"
#include "base/printable.h"

namespace dtrain {
namespace {

// The figures of an evaluation, each named with `prefix`. Writing and reading both use this list.
template <typename Figures, typename Visitor>
void VisitEvaluation(const std::string& prefix, Figures& figures, Visitor& visit) {
  visit(prefix + "rows", figures.rows);
  visit(prefix + "loss", figures.loss);
  visit(prefix + "accuracy", figures.accuracy);
  visit(prefix + "base_accuracy", figures.base_accuracy);
  visit(prefix + "base_class", figures.base_class);
  visit(prefix + "log_loss", figures.log_loss);
  visit(prefix + "base_log_loss", figures.base_log_loss);
  visit(prefix + "auc", figures.auc);
  visit(prefix + "average_precision", figures.average_precision);
  visit(prefix + "positive_class", figures.positive_class);
  visit(prefix + "positive_share", figures.positive_share);
  visit(prefix + "calibration", figures.calibration);
  visit(prefix + "thresholds", figures.thresholds);
  visit(prefix + "rmse", figures.rmse);
  visit(prefix + "base_rmse", figures.base_rmse);
  visit(prefix + "mae", figures.mae);
  visit(prefix + "base_mae", figures.base_mae);
  visit(prefix + "r2", figures.r2);
  visit(prefix + "deviance", figures.deviance);
  visit(prefix + "base_deviance", figures.base_deviance);
  visit(prefix + "d2", figures.d2);
  visit(prefix + "share_below", figures.share_below);
}

// The keys of `--result` in the order in which they are printed. Writing and reading both use this list.
template <typename Summary, typename Visitor>
void VisitKeys(Summary& summary, Visitor& visit) {
  visit("status", summary.status);
  visit("global_step", summary.global_step);
  visit("local_steps", summary.local_steps);
  visit("examples", summary.examples);
  visit("wall_s", summary.wall_s);
  visit("train_s", summary.train_s);
  visit("steps_per_s", summary.steps_per_s);
  visit("examples_per_s", summary.examples_per_s);
  visit("final_loss", summary.final_loss);
  visit("progressive_loss", summary.progressive_loss);
  VisitEvaluation("validation_", summary.validation, visit);
  VisitEvaluation("test_", summary.test, visit);
  visit("model_crc", summary.model_crc);
  visit("deterministic", summary.deterministic);
  visit("checkpoint", summary.checkpoint);
  visit("bytes_sent", summary.bytes_sent);
  visit("bytes_received", summary.bytes_received);
  visit("bytes_saved", summary.bytes_saved);
  visit("startup_s", summary.startup_s);
  visit("weights", summary.weights);
  visit("workers", summary.workers);
  visit("device", summary.device);
  visit("lost_workers", summary.lost_workers);
  visit("table", summary.table);
  visit("steps_given_again", summary.steps_given_again);
  visit("gradients_skipped", summary.gradients_skipped);
}

// The members of the structs in these lists.
template <typename Figures, typename Visitor>
void VisitMembers(Figures& figures, Visitor& visit) {
  using Struct = std::remove_const_t<Figures>;
  if constexpr (std::is_same_v<Struct, WorkerFigures>) {
    visit("steps", figures.steps);
    visit("data", figures.data);
    visit("compute", figures.compute);
    visit("hooks", figures.hooks);
    visit("wait", figures.wait);
    visit("network", figures.network);
    visit("staleness", figures.staleness);
    visit("rows_skipped", figures.rows_skipped);
    visit("rows_dropped", figures.rows_dropped);
    visit("unseen_categories", figures.unseen_categories);
    visit("gradients_skipped", figures.gradients_skipped);
    visit("rows", figures.rows);
    visit("leases", figures.leases);
  } else if constexpr (std::is_same_v<Struct, TimeSpread>) {
    visit("total_s", figures.total_s);
    visit("p50_ms", figures.p50_ms);
    visit("p95_ms", figures.p95_ms);
  } else if constexpr (std::is_same_v<Struct, StalenessSpread>) {
    visit("mean", figures.mean);
    visit("p50", figures.p50);
    visit("p95", figures.p95);
    visit("max", figures.max);
  } else if constexpr (std::is_same_v<Struct, ThresholdFigures>) {
    visit("from", figures.from);
    visit("share", figures.share);
    visit("precision", figures.precision);
    visit("recall", figures.recall);
  } else {
    static_assert(std::is_same_v<Struct, TableFigures>);
    visit("rows", figures.rows);
    visit("candidates", figures.candidates);
    visit("evicted", figures.evicted);
    visit("bytes", figures.bytes);
  }
}

// The fields that are only sent between tasks.
template <typename Summary, typename Visitor>
void VisitWireKeys(Summary& summary, Visitor& visit) {
  VisitKeys(summary, visit);
  visit("identity", summary.identity);
  visit("steps_before", summary.steps_before);
  visit("first_step_nanos", summary.first_step_nanos);
  visit("worker_accuracy", summary.worker_accuracy);
  visit("first_loss", summary.first_loss);
  visit("absent_workers", summary.absent_workers);
  visit("other_data", summary.other_data);
}

template <typename T>
Json ToValue(const T& value);
Json ToValue(const RunIdentity& value) {
  Json hosts = Json::object();
  for (const auto& [task, host] : value.hosts) hosts[task] = host;
  return {{"run_id", value.run_id}, {"hosts", hosts}};
}
Json ToValue(const std::string& value) { return value; }
Json ToValue(int64_t value) { return value; }
Json ToValue(bool value) { return value; }
Json ToValue(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Converts to the shortest decimal that reads back as the same float: 0.1, not 0.10000000149011612.
Json ToValue(float value) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
    if (std::strtof(text, nullptr) == value) break;
  }
  return std::strtod(text, nullptr);
}

template <typename T>
Json ToValue(const std::vector<T>& values);
template <typename T>
Json ToValue(const std::optional<T>& value) {
  return value ? ToValue(*value) : Json(nullptr);
}

template <typename T>
Json ToValue(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(ToValue(value));
  return list;
}

Json ToValue(const std::map<std::string, std::vector<float>>& weights) {
  if (weights.empty()) return nullptr;
  Json object = Json::object();
  for (const auto& [name, values] : weights) object[name] = ToValue(values);
  return object;
}

struct Writer {
  Json document = Json::object();
  template <typename T>
  void operator()(const std::string& key, const T& value) {
    document[key] = ToValue(value);
  }
};

template <typename T>
Json ToValue(const T& value) {
  Writer writer;
  VisitMembers(value, writer);
  return std::move(writer.document);
}

template <typename T>
bool FromValue(const Json& value, T* out);

bool FromValue(const Json& value, std::string* out) {
  if (!value.is_string()) return false;
  *out = Printable(value.get<std::string>());  // of another task
  return true;
}

bool FromValue(const Json& value, int64_t* out) {
  if (!value.is_number_integer()) return false;
  *out = value.get<int64_t>();
  return true;
}

bool FromValue(const Json& value, bool* out) {
  if (!value.is_boolean()) return false;
  *out = value.get<bool>();
  return true;
}

bool FromValue(const Json& value, double* out) {
  if (!value.is_number()) return false;
  *out = value.get<double>();
  return std::isfinite(*out);
}

// A value that is not finite was written as null, because JSON has no number for it.
bool FromValue(const Json& value, float* out) {
  *out = std::nanf("");
  if (value.is_null()) return true;
  if (!value.is_number()) return false;
  *out = value.get<float>();
  return true;
}

bool FromValue(const Json& value, RunIdentity* out) {
  const Json* const id = value.Find("run_id");
  const Json* const hosts = value.Find("hosts");
  if (id == nullptr || !FromValue(*id, &out->run_id) || hosts == nullptr || !hosts->is_object()) return false;
  out->hosts.clear();
  for (const auto& [task, host] : hosts->items()) {
    if (!FromValue(host, &out->hosts[Printable(task)])) return false;
  }
  return true;
}

template <typename T>
bool FromValue(const Json& value, std::vector<T>* out);
template <typename T>
bool FromValue(const Json& value, std::optional<T>* out) {
  out->reset();
  if (value.is_null()) return true;
  return FromValue(value, &out->emplace());
}

template <typename T>
bool FromValue(const Json& value, std::vector<T>* out) {
  if (!value.is_array()) return false;
  out->assign(value.size(), T());
  for (size_t i = 0; i < value.size(); ++i) {
    if (!FromValue(value[i], &(*out)[i])) return false;
  }
  return true;
}

bool FromValue(const Json& value, std::map<std::string, std::vector<float>>* out) {
  out->clear();
  if (value.is_null()) return true;
  if (!value.is_object()) return false;
  for (const auto& [name, values] : value.items()) {
    if (!FromValue(values, &(*out)[Printable(name)])) return false;
  }
  return true;
}

struct Reader {
  const Json& document;
  bool good = true;
  template <typename T>
  void operator()(const std::string& key, T& value) {
    const Json* const found = document.Find(key);
    good = good && found != nullptr && FromValue(*found, &value);
  }
};

template <typename T>
bool FromValue(const Json& value, T* out) {
  if (!value.is_object()) return false;
  Reader reader{value};
  VisitMembers(*out, reader);
  return reader.good;
}

}  // namespace

std::string FiguresToJson(const WorkerFigures& figures) { return ToValue(figures).dump(); }

bool FiguresFromJson(const std::string& text, WorkerFigures* figures) {
  const Json document = Json::Parse(text);
  WorkerFigures read;
  if (!FromValue(document, &read)) return false;
  *figures = read;
  return true;
}

double FigureOf(const EvaluationFigures& figures, EvalMetric metric) {
  const std::optional<double>& figure = metric == EvalMetric::kLoss       ? figures.loss
                                        : metric == EvalMetric::kAuc      ? figures.auc
                                        : metric == EvalMetric::kAccuracy ? figures.accuracy
                                        : metric == EvalMetric::kRmse     ? figures.rmse
                                                                          : figures.deviance;
  return figure.value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string EvaluationToJson(const EvaluationFigures& figures) {
  Writer writer;
  VisitEvaluation("", figures, writer);
  return writer.document.dump();
}

EvaluationFigures EvaluationFromJson(std::string_view text) {
  const Json document = Json::Parse(std::string(text));
  EvaluationFigures figures;
  Reader reader{document};
  if (document.is_object()) VisitEvaluation("", figures, reader);
  return document.is_object() && reader.good ? figures : EvaluationFigures();
}

std::string IdentityToJson(const RunIdentity& identity) { return ToValue(identity).dump(); }

bool IdentityFromJson(const std::string& text, RunIdentity* identity) {
  RunIdentity read;
  if (!FromValue(Json::Parse(text), &read)) return false;
  *identity = std::move(read);
  return true;
}

std::string TableText(const TableFigures& figures) {
  return fmt::format("{} and {} for more, {}; {} have left", Plural(figures.rows, "row"),
                     Plural(figures.candidates, "candidate"), BytesText(static_cast<double>(figures.bytes)),
                     figures.evicted);
}

Json ResultFigures(const RunSummary& summary) {
  Writer writer;
  VisitKeys(summary, writer);
  const bool done = summary.status == "done" || summary.status == "already_done";
  // The run ended before the workers' counts were collected: unknown, not zero.
  if (summary.local_steps.empty() || (!done && summary.workers.empty())) {
    for (const char* key : {"examples", "bytes_sent", "bytes_received", "bytes_saved", "workers"}) {
      writer.document[key] = nullptr;
    }
  }
  if (summary.local_steps.empty()) {
    writer.document["local_steps"] = nullptr;
    if (summary.lost_workers.empty()) writer.document["lost_workers"] = nullptr;
    // For an evaluation, or of a run that failed, the step may be known though nothing was counted.
    const bool known =
        summary.status == "done" || summary.validation.rows || summary.test.rows || summary.checkpoint;
    if (!known && summary.global_step == 0) writer.document["global_step"] = nullptr;
  }
  return std::move(writer.document);
}

std::string ToWireJson(const RunSummary& summary) {
  Writer writer;
  VisitWireKeys(summary, writer);
  return writer.document.dump();
}

bool Shorten(size_t max_bytes, RunSummary* summary) {
  const auto fits = [&] { return ToWireJson(*summary).size() <= max_bytes; };
  if (fits()) return false;
  summary->workers.clear();
  if (fits()) return true;
  summary->identity.hosts.clear();
  summary->worker_accuracy.clear();
  summary->local_steps.clear();
  summary->lost_workers.clear();
  summary->absent_workers.clear();
  return true;
}

bool FromWireJson(const std::string& text, RunSummary* summary) {
  const Json document = Json::Parse(text);
  if (!document.is_object()) return false;
  RunSummary read;
  Reader reader{document};
  VisitWireKeys(read, reader);
  if (reader.good) *summary = std::move(read);
  return reader.good;
}

}  // namespace dtrain
