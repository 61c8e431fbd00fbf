#include "trainer/result/run_summary.h"
#include "trainer/result/run_account.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/json.h"

namespace dtrain {
namespace {

RunSummary FullSummary() {
  RunSummary summary;
  summary.status = "done";
  summary.global_step = 82500;
  summary.local_steps = {27500, 27500, 27500};
  summary.examples = 8250000;
  summary.wall_s = 12.5;
  summary.train_s = 11.25;
  summary.steps_per_s = 7333.3333333333333;
  summary.examples_per_s = 733333.25;
  summary.final_loss = 0.1 + 0.2;
  summary.progressive_loss = 0.5;
  summary.validation.rows = 200;
  summary.validation.loss = 0.45;
  summary.test.rows = 1000;
  summary.test.loss = 0.4;
  summary.test.log_loss = 0.4 + 1e-9;
  summary.test.calibration = 1.25;
  summary.test.accuracy = 0.8891;
  summary.test.base_class = "no";
  summary.test.thresholds = {{0.1, 0.3, 0.5, 0.75}, {0.5, 0.2, 0.8, 0.4}};
  summary.validation.r2 = -0.5;
  summary.model_crc = "0badcafe";
  summary.deterministic = true;
  summary.bytes_sent = int64_t{1} << 40;
  summary.bytes_received = (int64_t{1} << 53) + 1;
  summary.startup_s = 0.03;
  summary.device = "cuda:0,1";
  summary.weights = {{"weights/W1", {1.99f, 0.1f, 1e-30f}}, {"biases/b1", {10.01f}}};
  WorkerFigures figures;
  figures.steps = 27500;
  figures.compute = {7.25, 0.1 + 0.2, 0.5};
  figures.wait = {1.5, 0.01, 0.75};
  summary.workers = {figures, figures};
  summary.workers[1].staleness = StalenessSpread{1.9, 2, 3, 70};
  summary.first_step_nanos = 1769860800123456789;
  summary.lost_workers = {2};
  summary.table = TableFigures{5, 7, 9, int64_t{1} << 33};
  summary.first_loss = 2.3;
  summary.worker_accuracy = {0.889, std::nullopt, 0.887};
  return summary;
}

TEST_CASE("run summary: the wire text brings back every field, to the last bit") {
  const RunSummary sent = FullSummary();
  RunSummary got;
  REQUIRE(FromWireJson(ToWireJson(sent), &got));
  CHECK(ToWireJson(got) == ToWireJson(sent));
  CHECK(ToJson(got) == ToJson(sent));
  CHECK(got.first_step_nanos == sent.first_step_nanos);
  CHECK(got.bytes_received == sent.bytes_received);
  CHECK(got.final_loss == sent.final_loss);
  CHECK(got.weights == sent.weights);
  CHECK(got.worker_accuracy == sent.worker_accuracy);
  CHECK(got.first_loss == sent.first_loss);
  CHECK(got.lost_workers == std::vector<int64_t>{2});
  CHECK_FALSE(got.test.auc.has_value());
  REQUIRE(got.workers.size() == 2);
  CHECK(got.workers[0].compute.p50_ms == 0.1 + 0.2);
  CHECK_FALSE(got.workers[0].staleness.has_value());
  CHECK(got.workers[1].staleness->max == 70);
  CHECK(got.table->candidates == 7);
}

TEST_CASE("run summary: a worker's figures come back from its text; what is not one leaves them alone") {
  const WorkerFigures sent = FullSummary().workers[1];
  WorkerFigures got;
  REQUIRE(FiguresFromJson(FiguresToJson(sent), &got));
  CHECK(FiguresToJson(got) == FiguresToJson(sent));
  for (const char* other : {"", "{", "null", "[]", "{\"steps\":1}", "{\"steps\":\"x\"}"}) {
    CAPTURE(other);
    CHECK_FALSE(FiguresFromJson(other, &got));
  }
  CHECK(got.steps == 27500);
}

TEST_CASE("run summary: the figures of an evaluation come back from their text, or none of them do") {
  EvaluationFigures sent;
  sent.rows = 7;
  sent.loss = 0.1 + 0.2;
  sent.auc = std::nan("");
  const EvaluationFigures got = EvaluationFromJson(EvaluationToJson(sent));
  CHECK(got.rows == 7);
  CHECK(got.loss == sent.loss);
  CHECK_FALSE(got.accuracy.has_value());
  CHECK_FALSE(got.auc.has_value());
  for (const char* other : {"", "{", "null", "[]", "{\"rows\":7}", "{\"rows\":\"x\",\"loss\":1}"}) {
    CAPTURE(other);
    CHECK_FALSE(EvaluationFromJson(other).rows.has_value());
  }
}

TEST_CASE("run summary: the wire text is one line") {
  CHECK(ToWireJson(FullSummary()).find('\n') == std::string::npos);
}

TEST_CASE("run summary: the result has the documented figures in the documented order") {
  const Json document = ResultFigures(FullSummary());
  std::vector<std::string> keys;
  for (const auto& [key, value] : document.items()) keys.push_back(key);
  const std::vector<std::string> documented = {"status",
                                               "global_step",
                                               "local_steps",
                                               "examples",
                                               "wall_s",
                                               "train_s",
                                               "steps_per_s",
                                               "examples_per_s",
                                               "final_loss",
                                               "progressive_loss",
                                               "validation_rows",
                                               "validation_loss",
                                               "validation_accuracy",
                                               "validation_base_accuracy",
                                               "validation_base_class",
                                               "validation_log_loss",
                                               "validation_base_log_loss",
                                               "validation_auc",
                                               "validation_average_precision",
                                               "validation_positive_class",
                                               "validation_positive_share",
                                               "validation_calibration",
                                               "validation_thresholds",
                                               "validation_rmse",
                                               "validation_base_rmse",
                                               "validation_mae",
                                               "validation_base_mae",
                                               "validation_r2",
                                               "validation_deviance",
                                               "validation_base_deviance",
                                               "validation_d2",
                                               "validation_share_below",
                                               "test_rows",
                                               "test_loss",
                                               "test_accuracy",
                                               "test_base_accuracy",
                                               "test_base_class",
                                               "test_log_loss",
                                               "test_base_log_loss",
                                               "test_auc",
                                               "test_average_precision",
                                               "test_positive_class",
                                               "test_positive_share",
                                               "test_calibration",
                                               "test_thresholds",
                                               "test_rmse",
                                               "test_base_rmse",
                                               "test_mae",
                                               "test_base_mae",
                                               "test_r2",
                                               "test_deviance",
                                               "test_base_deviance",
                                               "test_d2",
                                               "test_share_below",
                                               "model_crc",
                                               "deterministic",
                                               "checkpoint",
                                               "bytes_sent",
                                               "bytes_received",
                                               "bytes_saved",
                                               "startup_s",
                                               "weights",
                                               "workers",
                                               "device",
                                               "lost_workers",
                                               "table",
                                               "steps_given_again",
                                               "gradients_skipped"};
  CHECK(keys == documented);
}

TEST_CASE("run summary: what does not apply is null") {
  RunSummary summary;
  summary.status = "failed";
  const Json document = Json::Parse(ToJson(summary));
  for (const char* key :
       {"train_s",         "steps_per_s",     "examples_per_s",   "final_loss", "progressive_loss",
        "validation_rows", "validation_loss", "test_rows",        "test_loss",  "test_accuracy",
        "test_auc",        "test_log_loss",   "test_calibration", "model_crc",  "checkpoint",
        "startup_s",       "weights",         "workers",          "device",     "lost_workers"}) {
    CAPTURE(key);
    CHECK(document.at(key).is_null());
  }
  CHECK(document.at("status") == "failed");
  CHECK(document.at("global_step").is_null());
}

TEST_CASE(
    "run summary: workers that were lost are told by their indices, and that none was by an empty list") {
  RunSummary summary = FullSummary();
  CHECK(Json::Parse(ToJson(summary)).at("lost_workers") == Json::Parse("[2]"));
  summary.lost_workers.clear();
  CHECK(Json::Parse(ToJson(summary)).at("lost_workers") == Json::array());
}

TEST_CASE("run summary: of a run that a signal has stopped, what nobody has counted is null and not zero") {
  RunSummary summary;
  summary.status = "stopped";
  summary.global_step = 50;
  summary.local_steps = {20, 30};
  const Json document = Json::Parse(ToJson(summary));
  CHECK(document.at("global_step") == 50);
  CHECK(document.at("local_steps") == Json::Parse("[20, 30]"));
  for (const char* key : {"examples", "bytes_sent", "bytes_received", "workers"}) {
    CAPTURE(key);
    CHECK(document.at(key).is_null());
  }
}

TEST_CASE("run summary: of an evaluation the step is known, and nothing was counted") {
  RunSummary summary;
  summary.status = "done";
  summary.global_step = 7;
  const Json document = Json::Parse(ToJson(summary));
  CHECK(document.at("global_step") == 7);
  for (const char* key : {"local_steps", "examples", "bytes_sent"}) CHECK(document.at(key).is_null());
  summary.status = "peer_lost";  // no newer checkpoint has come
  summary.test.rows = 5;
  CHECK(Json::Parse(ToJson(summary)).at("global_step") == 7);
}

TEST_CASE("run summary: numbers that are not finite are null, since JSON has none") {
  RunSummary summary;
  summary.final_loss = std::nan("");
  summary.test.loss = std::numeric_limits<double>::infinity();
  summary.weights = {{"w", {std::numeric_limits<float>::infinity(), 2.0f}}};
  const Json document = Json::Parse(ToJson(summary));
  CHECK(document.at("final_loss").is_null());
  CHECK(document.at("test_loss").is_null());
  CHECK(document.at("weights").at("w") == Json::Parse("[null, 2.0]"));
}

TEST_CASE("run summary: weights are printed as short decimals") {
  CHECK(ToJson(FullSummary()).find("0.10000000149") == std::string::npos);
}

TEST_CASE("run summary: text that is damaged is refused and leaves the summary alone") {
  const std::string text = ToWireJson(FullSummary());
  RunSummary kept;
  kept.status = "untouched";
  for (size_t size = 0; size < text.size(); ++size) {
    CHECK_FALSE(FromWireJson(text.substr(0, size), &kept));
  }
  for (const char* other : {"null", "[]", "7", "{}", "{\"status\": 1}", "\xff\xfe"}) {
    CAPTURE(other);
    CHECK_FALSE(FromWireJson(other, &kept));
  }
  CHECK(kept.status == "untouched");
}

TEST_CASE("run summary: a value of another type is refused") {
  Json document = Json::Parse(ToWireJson(FullSummary()));
  const Json wrong = Json::Parse(R"({"a": "b"})");
  for (const auto& [key, value] : document.items()) {
    Json damaged = document;
    damaged[key] = key == "weights" ? Json("text") : wrong;
    RunSummary summary;
    CAPTURE(key);
    CHECK_FALSE(FromWireJson(damaged.dump(), &summary));
  }
}

TEST_CASE("run summary: keys that a later version adds are passed over") {
  Json document = Json::Parse(ToWireJson(FullSummary()));
  document["added_later"] = 1;
  RunSummary summary;
  CHECK(FromWireJson(document.dump(), &summary));
  CHECK(summary.global_step == 82500);
}

}  // namespace
}  // namespace dtrain
