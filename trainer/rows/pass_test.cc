#include "trainer/rows/pass.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

const LabelRules kTargets{std::nullopt, "model.kind = linear", ""};

// Tables of two columns, n and the label y, one for each of `contents`.
DataConfig Tables(const std::vector<std::string>& contents) {
  DataConfig data;
  data.train.format = DataFormat::kCsv;
  data.train.label = "y";
  for (const std::string& content : contents) {
    data.train.path.push_back(WritePlain("part" + std::to_string(data.train.path.size()) + ".csv", content));
  }
  return data;
}

TEST_CASE("pass: the files of a source are one sequence, and each row says where it is") {
  const DataConfig data = Tables({"n,y\n1,0\n2,0\n", "n,y\n", "n,y\n3,1\n"});
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, RowContext(), &inputs);
  RowLabels labels = pass.NewLabels(kTargets);
  CHECK(pass.inputs() == 1);
  ParsedRows rows;
  std::vector<size_t> files;
  std::vector<bool> begins;
  while (pass.Next(&rows, &labels)) {
    CHECK(pass.file_begin().byte == 4);
    CHECK(pass.count() == static_cast<int64_t>(labels.size()));
    files.push_back(pass.file());
    begins.push_back(pass.begins_file());
  }
  CHECK_FALSE(pass.Next(&rows, &labels));  // nor does anything else come
  pass.Finish(&labels);
  CHECK(rows.features == std::vector<float>{1, 2, 3});
  CHECK(labels.targets() == std::vector<float>{0, 0, 1});
  CHECK(files == std::vector<size_t>{0, 0, 2});
  CHECK(begins == std::vector<bool>{true, false, true});
  CHECK(pass.read_bytes() == 12 + 4 + 8);
  CHECK(pass.expected_bytes() == 12 + 4 + 8);
}

TEST_CASE("pass: a fault of a label names the file that it is in, and a later file has the same columns") {
  const auto error = [](const std::string& later) {
    const DataConfig data = Tables({"n,y\n1,0\n", later});
    SourceInputs inputs(data.train.path, "data.train.path");
    Pass pass(data, RowContext(), &inputs);
    RowLabels labels = pass.NewLabels(kTargets);
    ParsedRows rows;
    return UserErrorOf([&] {
      while (pass.Next(&rows, &labels)) {
      }
    });
  };
  CHECK(error("n,y\n2,x\n").find("part1.csv:2:3: y = x; must be a number") != std::string::npos);
  CHECK(error("m,y\n2,1\n").find("part1.csv:1:1: the column is \"m\" and must be \"n\"") !=
        std::string::npos);
}

TEST_CASE("pass: rows that cannot be read are counted over all files, and none at all is an error") {
  DataConfig data = Tables({"n,y\nx,0\n", "n,y\n1,\n"});
  data.bad_rows = BadRows::kSkip;
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, RowContext(), &inputs);
  RowLabels labels = pass.NewLabels(kTargets);
  ParsedRows rows;
  CHECK_FALSE(pass.Next(&rows, &labels));
  CHECK(pass.skipped().bad == 2);
  CHECK(UserErrorOf([&] { pass.Finish(&labels); }) ==
        data.train.path[0] +
            ": no row is left of data.train.path: 2 cannot be read (data.bad_rows), 0 have gaps "
            "(data.missing) and 0 "
            "no label. Correct them, or read them otherwise.");
}

TEST_CASE("pass: a row that is left out gives no class, also if it is the first") {
  DataConfig data = Tables({"n,y\nlow,maybe\n1,yes\nx,perhaps\n", "n,y\n2,no\n"});
  data.bad_rows = BadRows::kSkip;
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, RowContext(), &inputs);
  RowLabels labels = pass.NewLabels({2, "model.kind = logistic", "use softmax"});
  ParsedRows rows;
  while (pass.Next(&rows, &labels)) continue;
  pass.Finish(&labels);
  CHECK(labels.names() == std::vector<std::string>{"no", "yes"});
  CHECK(labels.classes() == std::vector<int32_t>{1, 0});
  data = Tables({"y,n\nunit,kg\n1,5\n", "y,n\n0,6\n"});
  data.bad_rows = BadRows::kSkip;
  SourceInputs numbers(data.train.path, "data.train.path");
  Pass second(data, RowContext(), &numbers);
  RowLabels counted = second.NewLabels({2, "model.kind = logistic", "use softmax"});
  while (second.Next(&rows, &counted)) continue;
  second.Finish(&counted);
  CHECK(counted.names().empty());
  CHECK(counted.classes() == std::vector<int32_t>{1, 0});
}

TEST_CASE("pass: a part without a record is no error, with and without a header") {
  for (const bool header : {true, false}) {
    CAPTURE(header);
    const std::string names = header ? "n,y\n" : "";
    DataConfig data = Tables({names + "1,0\n", "\n", names + "2,1\n"});
    data.train.header = header;
    data.train.label = "1";
    SourceInputs inputs(data.train.path, "data.train.path");
    Pass pass(data, RowContext(), &inputs);
    RowLabels labels = pass.NewLabels(kTargets);
    ParsedRows rows;
    while (pass.Next(&rows, &labels)) continue;
    CHECK(rows.features == std::vector<float>{1, 2});
    CHECK(pass.file() == 2);
  }
}

TEST_CASE("pass: files without a row are an error that says what the first line may be") {
  const DataConfig data = Tables({"n,y\n", "n,y\n"});
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, RowContext(), &inputs);
  RowLabels labels = pass.NewLabels(kTargets);
  CHECK(
      UserErrorOf([&] { pass.Finish(&labels); }) ==
      data.train.path[0] +
          ": no rows after the header; data.train.path must name files with data. If the first line is data, "
          "set data.train.header to false.");
}

TEST_CASE("pass: records are whole rows of texts, and no field is parsed") {
  const DataConfig data = Tables({"n,y\nx,?\n1\n1,2,3\n", "n,y\n5,no\n"});
  SourceInputs inputs(data.train.path, "data.train.path");
  RowContext context;
  context.records = true;
  Pass pass(data, context, &inputs);
  ParsedRows rows;
  std::string labels;
  while (pass.Next(&rows, nullptr)) labels += std::string(pass.rows().label().text) + " ";
  CHECK(labels == "? no ");
  CHECK(rows.features.empty());
}

}  // namespace
}  // namespace dtrain
