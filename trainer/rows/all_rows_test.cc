// What ReadAllRows() promises: any number of threads reads what one reads. Files are of several parts of
// about a MiB, and the first rows of each show nothing of what comes later.
#include "trainer/rows/pass.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

constexpr int kRows = 60'000;

LabelRules Classes(int64_t count) { return {count, fmt::format("model.outputs = {}", count), "raise it"}; }
const LabelRules kTargets{std::nullopt, "model.kind = linear", ""};

// So many rows, with a header and, where `bad` does not give another one, as "3.5,1200,-7,text,label".
std::string Rows(int count, const std::function<std::string(int row)>& label,
                 const std::function<std::string(int row)>& bad = {}) {
  std::string text = "a,b,c,note,y\n";
  for (int row = 0; row < count; ++row) {
    const std::string other = bad ? bad(row) : "";
    text += other.empty() ? fmt::format("{}.5,{},-{},some words of a text that is no feature,{}\n", row % 97,
                                        row, row % 7, label(row))
                          : other;
  }
  return text;
}
std::string Parity(int row) { return std::to_string(row % 2); }

DataConfig Tables(const std::vector<std::string>& contents) {
  DataConfig data;
  data.train.format = DataFormat::kCsv;
  data.train.label = "y";
  data.ignore = {"note"};
  for (const std::string& content : contents) {
    data.train.path.push_back(WritePlain("all" + std::to_string(data.train.path.size()), content));
  }
  return data;
}

DataConfig Lines(DataFormat format, const std::string& content) {
  DataConfig data;
  data.train.format = format;
  data.train.path = {WritePlain("lines", content)};
  return data;
}

template <typename Value>
void AddBytes(const std::vector<Value>& values, std::string* all) {
  all->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

// All that so many threads read: rows, labels, names and what was left out, or the error.
std::string ReadWith(int64_t threads, DataConfig data, const LabelRules& given, RowContext context = {}) {
  data.threads = threads;
  LabelRules rules = given;
  AddLabelKeys(data, &rules);
  std::string all;
  const std::string error = UserErrorOf([&] {
    SourceInputs inputs(data.train.path, "data.train.path");
    Pass pass(data, context, &inputs);
    RowLabels labels = pass.NewLabels(rules);
    size_t rows = 0;
    std::vector<float> features, weights, values;
    std::vector<uint64_t> ids;
    std::vector<int64_t> sizes;
    ReadAllRows(&pass, &labels, [&](const ParsedRows& part) {
      features.insert(features.end(), part.features.begin(), part.features.end());
      weights.insert(weights.end(), part.weights.begin(), part.weights.end());
      for (int64_t row = 0; row < part.sparse.count(); ++row) {
        const auto begin = static_cast<size_t>(part.sparse.offsets[static_cast<size_t>(row)]);
        const auto end = static_cast<size_t>(part.sparse.offsets[static_cast<size_t>(row) + 1]);
        sizes.push_back(static_cast<int64_t>(end - begin));
        for (size_t i = begin; i < end; ++i) {
          ids.push_back(part.sparse.ids[i]);
          values.push_back(part.sparse.values.empty() ? 1 : part.sparse.values[i]);
        }
      }
      rows = labels.size();
    });
    pass.Finish(&labels);
    const SkippedRows& skipped = pass.skipped();
    all = fmt::format("{} {} {} {} {} {}", pass.count(), rows, skipped.bad, skipped.with_gaps, skipped.unseen,
                      pass.read_bytes());
    for (const std::string& fault : skipped.faults) all += "\n" + fault;
    for (const std::string& name : labels.names()) all += "\n" + name;
    AddBytes(features, &all);
    AddBytes(weights, &all);
    AddBytes(sizes, &all);
    AddBytes(ids, &all);
    AddBytes(values, &all);
    AddBytes(labels.classes(), &all);
    AddBytes(labels.targets(), &all);
  });
  return error.empty() ? all : "error: " + error;
}

// Returns what one thread reads, after a look at what others read.
std::string Read(const DataConfig& data, const LabelRules& rules, const RowContext& context = {}) {
  const std::string one = ReadWith(1, data, rules, context);
  for (const int64_t threads : {2, 3, 7}) {
    CAPTURE(threads);
    const std::string several = ReadWith(threads, data, rules, context);
    CAPTURE(one.substr(0, 300));
    CAPTURE(several.substr(0, 400));
    CHECK((several == one));
  }
  return one;
}
bool Has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_CASE("all rows: files of a table are read once by any number of threads") {
  const DataConfig data = Tables({Rows(kRows, Parity), "a,b,c,note,y\n1,2,3,x,0\n", Rows(kRows, Parity)});
  CHECK(Read(data, Classes(2)).find("120001 ") == 0);
  const int64_t before = BytesRead();
  ReadWith(3, data, Classes(2));
  const auto size = static_cast<int64_t>(2 * Rows(kRows, Parity).size());
  CHECK(BytesRead() - before < size + 2 * 4 * (1 << 20));  // each reader begins with the first MiB
}

TEST_CASE(
    "all rows: line ends in quotes, CR, CR LF and lines without a row are where they are for one thread") {
  const auto quoted = [](int row) {
    return row % 3 == 0 ? fmt::format("1,{},2,\"two\nlines, with \"\"quotes\"\"\n\n\n\",1\n", row) : "";
  };
  CHECK(Read(Tables({Rows(kRows, Parity, quoted)}), Classes(2)).find("60000 ") == 0);
  const auto crlf = [](int row) { return fmt::format("1,{},2,a text of some words and more,0\r\n", row); };
  CHECK(Read(Tables({Rows(kRows, Parity, crlf)}), Classes(2)).find("60000 ") == 0);
  const auto cr = [](int row) { return fmt::format("1,{},2,a text of some words and more,0\r", row); };
  CHECK(Read(Tables({Rows(kRows, Parity, cr)}), Classes(2)).find("60000 ") == 0);
  const auto comments = [](int row) { return row % 2 == 0 ? "# \"a comment\n" : ""; };
  DataConfig commented = Tables({Rows(kRows, Parity, comments) + "\n\n", Rows(10, Parity)});
  commented.comment = "#";
  CHECK(Read(commented, Classes(2)).find("30010 ") == 0);
}

TEST_CASE(
    "all rows: an error is the first of the file and tells its line, whatever came before in its part") {
  const auto at = [](int wrong, const std::string& line) {
    return [=](int row) { return row == wrong ? line : ""; };
  };
  const auto error = [&](const std::string& line) {
    const DataConfig data = Tables({Rows(kRows, Parity), Rows(kRows, Parity, at(kRows - 1, line))});
    return Read(data, Classes(2));
  };
  CHECK(Has(error("1,x,2,n,0\n"), "all1:60001:3: b = x; must be a number"));
  CHECK(Has(error("1,2,2,n,7\n"), "all1:60001:9: y = 7; must be"));
  CHECK(Has(error("1,2,n,0\n"), "all1:60001:8: 4 fields; must be 5"));
  CHECK(Has(error("\n1,x,3,n,0\n"), "all1:60002:3: b = x"));
  CHECK(Has(error("1,2,3,\"n,0\n"), "all1:60001:7: a quote opens here"));
  CHECK(Has(error("1,2,3,\"n\"n,0\n"), "all1:60001:10: text after a closing quote"));
  const DataConfig first = Tables({Rows(kRows, Parity, at(0, "one,2,3,n,0\n"))});
  CHECK(Has(Read(first, Classes(2)), "data.categories"));  // a remedy for the first row alone
  const DataConfig both = Tables({Rows(kRows, Parity, at(50'000, "1,2,x,n,0\n"))});
  CHECK(Has(Read(both, Classes(2)), "all0:50002:5: c = x"));
}

TEST_CASE("all rows: rows that are left out are counted and told in their order, up to the limit") {
  DataConfig few = Tables(
      {Rows(kRows, Parity, [](int row) { return row > 30'000 && row % 7'000 == 0 ? "1,2,?,n,0\n" : ""; })});
  few.bad_rows = BadRows::kSkip;
  CHECK(Has(Read(few, Classes(2)), "59996 59996 4 0 0"));
  const auto often = [](int row) {
    return row % 300 == 0 ? "1,2\n" : row % 300 == 1 ? "1,2,3,n,?\n" : row % 300 == 2 ? "1,2,?,n,0\n" : "";
  };
  DataConfig many = Tables({Rows(kRows, Parity, often)});
  many.bad_rows = BadRows::kSkip;
  CHECK(Has(Read(many, Classes(2)), "59400 59400 600 0 0"));
  many.bad_rows_limit = 500;
  CHECK(Has(Read(many, Classes(2)), "It is bad row 501, and data.bad_rows_limit = 500"));
  many.bad_rows_limit = 1000;
  many.missing = MissingValues::kDrop;
  CHECK(Has(Read(many, Classes(2)), "59400 59400 200 400 0"));
  RowContext context;
  context.how.resize(3);
  context.how[0].is_category = true;
  context.how[0].categories = {"1.5", "2.5"};
  DataConfig texts = Tables({Rows(kRows, Parity)});
  CHECK(Has(Read(texts, Classes(2), context), "60000 60000 0 0 58762"));
}

TEST_CASE("all rows: names and kinds of classes are those that come first in the files") {
  const auto named = [](int row) {
    return row < 30'000 ? "m" : row < 40'000 ? "z" : row % 2 == 0 ? "k" : row < 50'000 ? "a" : "b";
  };
  const DataConfig names = Tables({Rows(kRows, named), Rows(kRows, named)});
  CHECK(Has(Read(names, Classes(5)), "\na\nb\nk\nm\nz"));
  CHECK(Has(Read(names, Classes(4)),
            "y = b; must be one of 4 classes (model.outputs = 4); before it came m, z, k and a."));
  DataConfig skips = names;
  skips.bad_rows = BadRows::kSkip;
  skips.bad_rows_limit = 100'000;
  CHECK(Has(Read(skips, Classes(4)), "110000 110000 10000 0 0"));
  CHECK(Has(Read(Tables({Rows(kRows, [](int row) { return row < 50'000 ? "m" : "1"; })}), Classes(5)),
            "must be a name, as the first label, m, is"));
  const auto late = [](int row) {
    return row < 30'000 ? "1" : row == 55'000 ? "0" : row % 2 == 0 ? "1" : "-1";
  };
  CHECK(Has(Read(Tables({Rows(kRows, late)}), Classes(2)), "must be as in the rows before"));
  const auto minus = [](int row) { return row < 30'000 || row % 2 == 0 ? "1" : "-1"; };
  CHECK(Has(Read(Tables({Rows(kRows, minus)}), Classes(2)), "\n-1\n1"));
  DataConfig texts = Tables({Rows(kRows, [](int row) { return row < 50'000 ? "1" : "1.0"; })});
  texts.label_type = LabelType::kNames;
  CHECK(Has(Read(texts, Classes(1)), "\n1"));
  CHECK(Read(Tables({Rows(kRows, [](int row) { return fmt::format("{}.25", row); })}), kTargets)
            .find("60000 ") == 0);
}

TEST_CASE("all rows: classes that the config names have the numbers that they would have without it") {
  const auto named = [](int row) { return row < 30'000 ? "m" : row % 2 == 0 ? "7" : "a"; };
  DataConfig data = Tables({Rows(kRows, named)});
  data.label_type = LabelType::kNames;
  const std::string found = Read(data, Classes(3));
  data.classes = {"7", "a", "m"};
  CHECK((Read(data, Classes(3)) == found));
  data.label_type = LabelType::kAuto;
  CHECK((Read(data, Classes(3)) == found));
  data.classes = {"a", "b", "m"};
  CHECK(Has(Read(data, Classes(3)), "y = 7; must be a, b or m (data.classes, or those of the checkpoint)."));
}

TEST_CASE("all rows: lines of sparse rows, with weights, comments and values that are all 1 at first") {
  std::string libsvm, vw;
  for (int row = 0; row < kRows; ++row) {
    const char* const value = row < 40'000 ? "1" : "0.5";
    libsvm += fmt::format("{} 3:1 {}:{} 70000:1 80000:1 90000:1 100001:1\n", row % 2, 5 + row % 100, value);
    if (row % 5 == 0) libsvm += "# nothing\n\n";
    vw += fmt::format("{} {} |n one two:{} three_{}\n", row % 2 == 0 ? 1 : -1, row % 4, value, row % 1000);
  }
  RowContext context;
  context.inputs = 1 << 18;
  DataConfig data = Lines(DataFormat::kLibsvm, libsvm);
  CHECK(Read(data, Classes(2), context).find("60000 ") == 0);
  CHECK(Read(Lines(DataFormat::kVw, vw), Classes(2), context).find("60000 ") == 0);
  context.inputs = 100'000;
  CHECK(Has(Read(data, Classes(2), context), "lines:1:"));
}

TEST_CASE("all rows: packed files are read as they come, and the others of the source by threads") {
  DataConfig data = Tables({Rows(kRows, Parity)});
  data.train.path.insert(data.train.path.begin(), WriteGzip("all.gz", Rows(kRows, Parity)));
  CHECK(Read(data, Classes(2)).find("120000 ") == 0);
}

}  // namespace
}  // namespace dtrain
