// Rows of CSV files, JSON lines and IDX images against what stands in them.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "trainer/input/csv_reader.h"
#include "trainer/input/data_test_util.h"
#include "trainer/input/sources.h"
#include "trainer/rows/row_files.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {
namespace {

RowSpec Named() {
  RowSpec spec;
  spec.inputs = 2;
  spec.form.features = {"width", "height"};
  spec.form.classes = {"elm", "oak"};
  spec.form.scale = {{1, 10}, {2, 0.5}};
  spec.label = "tree";
  return spec;
}

RowSpec Unnamed(int64_t inputs) {
  RowSpec spec;
  spec.inputs = inputs;
  return spec;
}

RowSpec Sparse(DataFormat format, int64_t inputs) {
  RowSpec spec;
  spec.inputs = inputs;
  spec.data.train.format = format;
  return spec;
}

const LabelRules kTwoClasses{2, "model.kind = logistic", "use softmax"};

using Floats = std::vector<float>;

RowBlock ReadAll(const std::string& content, const RowSpec& spec, const std::string& labels = "") {
  RowReader rows(WritePlain("rows", content), spec, labels);
  RowBlock block(spec.inputs);
  while (rows.Next(&block)) continue;
  return block;
}
Floats Features(const std::string& content, const RowSpec& spec) { return ReadAll(content, spec).features; }

// What is told of `content`, after the file's name.
std::string ErrorOf(const std::string& content, const RowSpec& spec) {
  const std::string path = WritePlain("rows", ""), text = UserErrorOf([&] { ReadAll(content, spec); });
  return text.find(path) == 0 ? text.substr(path.size()) : text;
}
bool Begins(const std::string& text, const std::string& begin) { return text.find(begin) == 0; }
bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("rows: columns of a CSV file are found by name, scaled, and others are not read") {
  const Floats expected{4, -4.5, 6, -4};
  CHECK(Features("height,color,width\n1,red,3\n2,blue,4\n", Named()) == expected);
  CHECK(Features("tree,width,height\noak,3,1\nelm,4,2\n", Named()) == expected);
  CHECK(Features("width,height\r\n3,1\r\n4,2", Named()) == expected);
}

// plan (a category), age (a number with gaps), of a table id, plan, y, age.
RowSpec WithColumns() {
  RowSpec spec;
  spec.inputs = 4;
  spec.form.columns = {{1, "plan", true, {"free", "pro"}, false, {}, false},
                       {3, "age", false, {}, false, 30, true}};
  spec.form.features = {"plan=free", "plan=pro", "age", "age=missing"};
  spec.form.scale = {{0, 0, 10, 0}, {1, 1, 0.5, 1}};
  spec.form.table_columns = 4;
  spec.form.label_column = 2;
  spec.label = "y";
  return spec;
}

TEST_CASE("rows: categories and gaps become features in CSV files and JSON lines, by name and by place") {
  const Floats expected{0, 1, 5, 0, 1, 0, 10, 1, 0, 0, 0, 0};
  CHECK(Features("age;more;plan\n20;x;pro\nNA;x;free\n10;x;gold\n", WithColumns()) == expected);
  CHECK(Features("r1,pro,0,20\nr2,free,1,\nr3,gold,0,10\n", WithColumns()) == expected);
  CHECK(Features("pro,20\nfree,?\ngold,10\n", WithColumns()) == expected);
  CHECK(Features("{\"plan\": \"pro\", \"age\": 20}\n[\"free\", null]\n[\"gold\", 10]\n", WithColumns()) ==
        expected);
  RowSpec no_gaps = WithColumns();
  no_gaps.inputs = 3;
  no_gaps.form.columns[1] = {3, "age", false, {}, false, {}, false};
  no_gaps.form.scale = {};
  CHECK(Begins(ErrorOf("plan,age\npro,\n", no_gaps), ":2:5: age is empty; must be a number."));
}

SkippedRows SkippedOf(const std::string& content, const RowSpec& spec) {
  RowReader rows(WritePlain("rows", content), spec);
  RowBlock block(spec.inputs);
  while (rows.Next(&block)) continue;
  return rows.skipped();
}

TEST_CASE("rows: texts of no category are counted by column, with the most frequent one, in each format") {
  for (const std::string content :
       {"plan,age\ngold,1\npro,2\ntin,3\ngold,4\n,5\n", "gold,1\npro,2\ntin,3\ngold,4\n,5\n",
        "{\"plan\": \"gold\", \"age\": 1}\n[\"pro\", 2]\n[\"tin\", 3]\n[\"gold\", 4]\n[null, 5]\n"}) {
    const SkippedRows skipped = SkippedOf(content, WithColumns());
    CHECK(skipped.unseen == 4);
    REQUIRE(skipped.unseen_in.size() == 1);
    const UnseenTexts& plan = skipped.unseen_in.at("plan");
    CHECK(plan.rows == 4);
    CHECK(plan.MostFrequent() == std::pair<const std::string, int64_t>{"gold", 2});
    CHECK(plan.texts.size() == 3);
  }
  CHECK(SkippedOf("plan,age\nfree,1\npro,\n", WithColumns()).unseen_in.empty());
  RowSpec others = WithColumns();
  others.form.columns[0].categories = {"free"};
  others.form.columns[0].has_other = true;
  CHECK(SkippedOf("plan,age\ngold,1\n", others).unseen == 0);  // training had others too
}

TEST_CASE("rows: columns that are not used and another order are noted, by name alone") {
  const auto unused = [](const std::string& content, const RowSpec& spec) {
    const std::set<std::string> names = SkippedOf(content, spec).unused;
    return std::vector<std::string>(names.begin(), names.end());
  };
  using Names = std::vector<std::string>;
  RowSpec spec = WithColumns();
  CHECK(unused("id,plan,y,age\n1,pro,0,2\n", spec) == Names{"id"});
  spec.data.ignore = {"id"};
  spec.data.weight = "w";
  spec.keep = {"note"};
  CHECK(unused("id,plan,y,age,w,note\n1,pro,0,2,1,n\n", spec).empty());
  CHECK(unused("more,id,plan,y,age,less,note\n1,1,pro,0,2,1,n\n", spec) == Names{"less", "more"});
  CHECK(unused("{\"plan\": \"pro\", \"age\": 2, \"id\": 7, \"y\": 1, \"note\": 1}\n", spec).empty());
  CHECK(unused("{\"plan\": \"pro\", \"age\": 2, \"note\": 1, \"ages\": 3}\n", spec) == Names{"ages"});
  const auto notes = [](const std::string& content, const RowSpec& spec) {
    const std::set<std::string> told = SkippedOf(content, spec).notes;
    return told.empty() ? "" : *told.begin();
  };
  CHECK(notes("plan,age\npro,1\n", WithColumns()) == "");
  CHECK(notes("pro,1\n", WithColumns()) == "");
  CHECK(Begins(notes("age,plan\n1,pro\n", WithColumns()), "the columns are in another order than in the"));
  CHECK(Begins(notes("a,b\n1,2\n", Unnamed(2)), "the names in the first line are not used: "));
  CHECK(notes("1,2\n", Unnamed(2)) == "");
  RowSpec without_header = Unnamed(2);
  without_header.header = false;
  CHECK(Begins(notes("a,b\n1,2\n", without_header), "the names in the first line are not used: "));
  CHECK(notes("1,2\n", without_header) == "");
}

TEST_CASE("skipped rows: what came behind others is the rest of both") {
  SkippedRows all;
  all.AddUnseen("c", "x");
  all.bad = 1;
  all.faults = {"one"};
  const SkippedRows head = all;
  all.AddUnseen("c", "y");
  all.AddUnseen("c", "x");
  all.AddUnseen("d", "z");
  all.bad = 2;
  all.faults.push_back("two");
  SkippedRows since = all.Since(head);
  CHECK(since.bad == 1);
  CHECK(since.faults == std::vector<std::string>{"two"});
  CHECK(since.unseen == 3);
  CHECK(since.unseen_in.at("c").rows == 2);
  CHECK(all.Since(all).unseen_in.empty());
  since.Add(head);
  CHECK(since.unseen_in.at("c").texts == all.unseen_in.at("c").texts);
  CHECK(since.unseen == all.unseen);
}

TEST_CASE(
    "rows: markers, spellings of numbers and forms of dates are those of the model, in CSV and in JSON "
    "lines") {
  RowSpec spec;
  spec.inputs = 4;
  spec.form.columns = {{1, "plan", true, {"", "pro"}, false, {}, false},
                       {3, "price", false, {}, false, 30, false},
                       {0, "day", false, {}, false, 7, false, true}};
  spec.form.features = {"plan=missing", "plan=pro", "price", "day"};
  spec.form.table_columns = 4;
  spec.form.label_column = 2;
  spec.label = "y";
  spec.data.categories = {"plan"};
  spec.data.missing_values = {"none", "3=-1"};
  spec.data.number_format = {"price=$1,234.50"};
  spec.data.dates = {"day=MM/DD/YYYY"};
  const Floats expected{0, 1, 1234.5f, 1, 1, 0, 30, 7, 0, 0, -5, 2};
  CHECK(Features("price,plan,day\n\"$1,234.50\",pro,01/02/1970\n$-1,none,none\n($5),-1,1/3/1970\n", spec) ==
        expected);
  CHECK(Features("01/02/1970,pro,0,\"$1,234.50\"\nnone,none,1,-1.0\n1/3/1970,-1,0,($5)\n", spec) == expected);
  CHECK(Features("[\"pro\", \"$1,234.50\", \"01/02/1970\"]\n[\"none\", -1, NaN]\n"
                 "{\"day\": \"1/3/1970\", \"price\": -5, \"plan\": \"-1\"}\n",
                 spec) == expected);
  CHECK(Begins(ErrorOf("price,plan,day\n5 kg,pro,01/02/1970\n", spec),
               ":2:1: price = 5 kg; must be a number."));
  spec.form.columns[1].fill.reset();
  CHECK(Begins(ErrorOf("price,plan,day\nnone,pro,01/02/1970\n", spec),
               ":2:1: price = none; must be a number."));
}

TEST_CASE("rows: without a header columns are the features in order, with or without a label") {
  const Floats expected{4, -4.5, 6, -4};
  CHECK(Features("3,1\n4,2\n", Named()) == expected);
  CHECK(Features("oak,3,1\nelm,4,2\n", Named()) == expected);
  CHECK(Features("3,1,oak\n4,2,elm\n", Unnamed(2)) == Floats{3, 1, 4, 2});
  CHECK(Features("a,b\n3,1\n", Unnamed(2)) == Floats{3, 1});
  RowSpec first = Unnamed(2);
  first.label = "0";
  CHECK(Features("7,3,1\n8,4,2\n", first) == Floats{3, 1, 4, 2});
}

TEST_CASE("rows: without a header the label stands where it stood in the training data, or it is asked for") {
  RowSpec spec = Named();
  const std::string asked =
      ":1:1: 3 columns, and the model has 2 features: the checkpoint does not say where the label "
      "\"tree\" stands. Give a first line with the columns' names, or leave out the label.";
  CHECK(ErrorOf("7,3,1\n8,4,2\n", spec) == asked);
  CHECK(ErrorOf("ash,3,1\n", spec) == asked);
  for (const int64_t column : {0, 1, 2}) {
    CAPTURE(column);
    spec.form.label_column = column;
    const char* const rows[] = {"oak,3,1\n,4,2\n", "3,oak,1\n4,elm,2\n", "3,1,oak\n4,2,ash\n"};
    CHECK(Features(rows[column], spec) == Floats{4, -4.5, 6, -4});
    CHECK(Features("3,1\n4,2\n", spec) == Floats{4, -4.5, 6, -4});
  }
  spec.form.label_column = 0;
  CHECK(Begins(ErrorOf("oak,x,1\n", spec), ":1:5: width = x; must be a number"));
  spec.form.label_column = 2;
  CHECK(ErrorOf("17,3,1\n", spec) ==
        ":1:6: \"1\" stands where the label does in the training data, and is no class of the model, as "
        "\"elm\" is. Give a first line with the columns' names, or leave out the label.");
}

TEST_CASE("rows: of a model of images the label is the column of this name, and otherwise asked for") {
  const Floats expected{3, 1, 4, 2};
  CHECK(Features("label,pixel0,pixel1\n7,3,1\n8,4,2\n", Unnamed(2)) == expected);
  CHECK(Features("LABEL,0,1\n7,3,1\n8,4,2\n", Unnamed(2)) == expected);
  CHECK(Features("pixel0,pixel1,Label\n3,1,7\n4,2,8\n", Unnamed(2)) == expected);
  const std::string asked =
      ":1:1: 3 columns, and the model has 2 features: the checkpoint does not say where the label "
      "stands. Call it label in a first line, or leave out the label.";
  CHECK(ErrorOf("7,3,1\n8,4,2\n", Unnamed(2)) == asked);
  CHECK(ErrorOf("class,pixel0,pixel1\n7,3,1\n", Unnamed(2)) == asked);
  CHECK(ErrorOf("label,pixel0\n7,3\n", Unnamed(2)) ==
        ":1:1: 2 columns, the label among them; the model has 2 features, and a row may have a label "
        "besides. Is it the right file?");
}

TEST_CASE("rows: a row is not taken for a header, and lost, for one field that is no number") {
  CHECK(ErrorOf("3,x\n4,2\n", Unnamed(2)) ==
        ":1:3: column 2 = x; must be a number. Correct it, or remove the row.");
  CHECK(Begins(ErrorOf("oak,3,x\nelm,4,2\n", Named()), ":1:7: height = x; must"));
  CHECK(Begins(ErrorOf("3,1,oak\n4,x,elm\n", Unnamed(2)), ":2:3: column 2 = x; must"));
  RowSpec numbers = Unnamed(2);
  numbers.form.features = {"0", "1"};
  CHECK(Features("0,1\n5,6\n", numbers) == Floats{5, 6});
  CHECK(Features("1,0\n5,6\n", numbers) == Floats{1, 0, 5, 6});
  RowSpec last = Unnamed(2);
  last.label = "2";
  CHECK(Features("3,1,no\n4,2,yes\n", last) == Floats{3, 1, 4, 2});
  numbers.label = "0";
  CHECK(Features("7,0,1\n8,5,6\n", numbers) == Floats{5, 6});
  CHECK(Features(",height,width\n0,1,3\n", Named()) == Floats{4, -4.5});
}

TEST_CASE("rows: without names a first row that can be one is a row") {
  RowSpec texts = Unnamed(3);
  texts.form.columns = {{1, "", true, {"x", "z"}, false, {}, false}, {2, "", true, {"s"}, false, {}, false}};
  texts.form.table_columns = 3;
  texts.form.label_column = 0;
  texts.label = "0";
  CHECK(Features("p,x,s\np,z,s\n", texts) == Floats{1, 0, 1, 0, 1, 1});
  CHECK(Features("p,NA,q\np,z,s\n", texts) == Floats{0, 0, 0, 0, 1, 1});
  RowSpec gaps = Unnamed(2);
  gaps.form.columns = {{0, "", false, {}, false, 7, false}, {1, "", false, {}, false, 8, false}};
  CHECK(Features("NA,?\n1,2\n", gaps) == Floats{7, 8, 1, 2});
  CHECK(Features("NA,NA\n", gaps) == Floats{7, 8});
}

TEST_CASE("rows: with names a first row of the model's categories is a row, and names are a header") {
  RowSpec spec = WithColumns();
  spec.form.columns[1] = {3, "side", true, {"north", "south"}, false, {}, false};
  spec.form.scale = {};
  CHECK(Features("pro,north\nfree,south\n", spec) == Floats{0, 1, 1, 0, 1, 0, 0, 1});
  CHECK(Features("side,plan\nnorth,pro\n", spec) == Floats{0, 1, 1, 0});
  CHECK(Has(ErrorOf("Side,Plan\nnorth,pro\n", spec), "no column \"plan\""));
  spec.header = false;
  CHECK(Features("side,plan\nnorth,pro\n", spec) == Floats{0, 1, 1, 0});
  CHECK(Features("pro,north\n", spec) == Floats{0, 1, 1, 0});
}

TEST_CASE("rows: a header has a name less than rows have fields, or one empty one more") {
  const Floats expected{4, -4.5, 6, -4};
  CHECK(Features("\"height\",\"width\"\n\"1\",1,3\n\"2\",2,4\n", Named()) == expected);
  CHECK(Features("height,width\n1,3,\n2,4,\n", Named()) == expected);
  CHECK(Features("height,width,\n1,3\n2,4\n", Named()) == expected);
  CHECK(Features("height,width,\n1,3,\n2,4,,\n", Named()) == expected);
  CHECK(Has(ErrorOf("height,width\n1,3\n2,4,5\n", Named()), ":3:5: 3 fields; must be 2"));
}

TEST_CASE("rows: a line that is the header again is no row, and is told with its place") {
  for (const char* content :
       {"width,height\n3,1\nwidth,height\n4,2\n", "width,height\n3,1\n\"width\", height\n4,2",
        "width,height\nwidth,height\n3,1\n4,2\nwidth,height\n"}) {
    CAPTURE(content);
    RowReader rows(WritePlain("rows", content), Named());
    RowBlock block(2);
    while (rows.Next(&block)) continue;
    CHECK(block.features == Floats{4, -4.5, 6, -4});
    REQUIRE(!rows.skipped().headers.empty());
    CHECK(Has(rows.skipped().headers[0], ":1: the header again, which is no row"));
    CHECK(rows.skipped().bad == 0);
  }
  CHECK(Has(ErrorOf("width,height\n3,1\nwidth,x\n", Named()), ":3:1: width = width; must be a number"));
}

TEST_CASE("rows: a second line of names or units is no row, and is told with its place") {
  const std::string content = "width,height\n[cm],[m]\n3,1\n4,2\n";
  RowReader rows(WritePlain("rows", content), Named());
  RowBlock block(2);
  while (rows.Next(&block)) continue;
  CHECK(block.features == Floats{4, -4.5, 6, -4});
  REQUIRE(rows.skipped().headers.size() == 1);
  CHECK(Has(rows.skipped().headers[0], ":2:1: a second line of names or units, which is no row"));
}

TEST_CASE("rows: an empty line before a row of one field may be a missing value, and is refused") {
  CHECK(Has(ErrorOf("1\n\n2\n", Unnamed(1)), ":3:1: an empty line stands before this row"));
  CHECK(Features("1\n2\n\n", Unnamed(1)) == Floats{1, 2});
}

TEST_CASE("rows: columns of one name are told apart by the training data's order") {
  RowSpec spec = Unnamed(2);
  spec.form.features = {"size", "size"};
  spec.label = "tree";
  CHECK(Features("size,tree,size\n3,oak,1\n", spec) == Floats{3, 1});
  CHECK(Features("size,size\n3,1\n", spec) == Floats{3, 1});
  CHECK(Has(ErrorOf("size,other,size\n3,4,1\n", spec), "more than one column"));
  spec.form.columns.resize(1);
  spec.form.columns[0].column = 1;
  spec.form.columns[0].name = "size";
  spec.form.features = {"size"};
  spec.form.table_columns = 3;
  spec.form.label_column = 2;
  CHECK(Features("size,size,tree\n3,1,oak\n", spec) == Floats{1});
  CHECK(Has(ErrorOf("size,tree,size\n3,oak,1\n", spec), "more than one column"));
}

TEST_CASE("rows: a label that is a number is a column's number, as in training, whatever the names") {
  RowSpec spec = Unnamed(2);
  spec.form.features = {"0", "2"};
  spec.label = "1";
  spec.labels = kTwoClasses;
  const RowBlock block = ReadAll("0,y,2\n3,1,4\n5,0,6\n", spec);
  CHECK(block.classes == std::vector<int32_t>{1, 0});
  CHECK(block.features == Floats{3, 4, 5, 6});
  RowSpec named = Named();
  named.form.classes.clear();
  named.label = "2";
  named.labels = spec.labels;
  CHECK(
      Begins(ErrorOf("tree,width,height\n1,3,1\n", named), ":1:12: column \"height\" is the label (2), and"));
}

TEST_CASE("rows: an empty line holds no answer back: what comes behind it may have to be waited for") {
  for (const char* content : {"3,1\n\r\n\n", "[3,1]\n \r\n\n"}) {
    CAPTURE(content);
    RowReader rows(WritePlain("a.csv", content), Named());
    RowBlock block(2);
    CHECK(rows.Next(&block));
    CHECK_FALSE(rows.HasMore());
    CHECK_FALSE(rows.Next(&block));
  }
}

TEST_CASE("rows: labels are read where they are asked for, by name, by number or as targets") {
  RowSpec spec = Named();
  spec.labels = kTwoClasses;
  CHECK(ReadAll("tree,width,height\noak,3,1\nelm,4,2\n", spec).classes == std::vector<int32_t>{1, 0});
  spec.form.classes.clear();
  CHECK(ReadAll("tree,width,height\n1,3,1\n0,4,2\n", spec).classes == std::vector<int32_t>{1, 0});
  spec.labels = LabelRules();
  CHECK(ReadAll("tree,width,height\n1.5,3,1\n-2,4,2\n", spec).targets == Floats{1.5, -2});
  CHECK(Begins(ErrorOf("width,height\n3,1\n", spec), ":1:1: no column \"tree\""));
}

TEST_CASE("rows: the offset that the model adds is read of each row, labelled or not, and must be there") {
  RowSpec spec = Named();
  spec.data.offset = "log_days";
  const Floats offsets{0.5, -2};
  CHECK(ReadAll("width,log_days,height\n3,0.5,1\n4,-2,2\n", spec).row_offsets == offsets);
  CHECK(ReadAll("{\"width\": 3, \"log_days\": 0.5, \"height\": 1}\n"
                "{\"features\": [4, 2], \"log_days\": -2}\n",
                spec)
            .row_offsets == offsets);
  CHECK(ErrorOf("width,height\n3,1\n", spec) ==
        ":1:1: no column \"log_days\", which says what is added to the output of each row (data.offset). Add "
        "it.");
  CHECK(ErrorOf("3,1\n", spec).find("no column \"log_days\"") != std::string::npos);
  CHECK(Begins(ErrorOf("width,log_days,height\n3,,1\n", spec),
               ":2:3: log_days is empty; must be a finite number (data.offset)."));
  spec.data.missing_values = {"log_days=-9"};
  CHECK(
      Begins(ErrorOf("width,log_days,height\n3,-9,1\n", spec),
             ":2:3: log_days = -9; must be a finite number (data.offset), and data.missing_values says that "
             "this is none."));
  spec.data.missing_values.clear();
  RowSpec by_place = WithColumns();
  by_place.form.table_columns = 5;
  by_place.data.offset = "4";
  CHECK(ReadAll("7,pro,anything,20,0.5\n7,free,,10,-2\n", by_place).row_offsets == offsets);
  CHECK(
      ErrorOf("7,pro,20,0.5\n", by_place) ==
      ":1:1: 4 columns; without names a row must have the 5 of the training data, that of data.offset among "
      "them. Put anything in the place of the label, or give a first line with the columns' names.");
  CHECK(ErrorOf("[3, 1]\n", spec) ==
        ":1: no \"log_days\", which says what is added to the output of the row (data.offset). Add it.");
  CHECK(Begins(ErrorOf("{\"features\": [3, 1], \"log_days\": null}\n", spec),
               ":1: log_days = null; must be a number."));
}

TEST_CASE("rows: what cannot be read of a CSV file is told with its place") {
  CHECK(ErrorOf("width,height\n3,x\n", Named()) ==
        ":2:3: height = x; must be a number. Correct it, or remove the row.");
  CHECK(ErrorOf("width,height\n3,1\n3\n", Named()) ==
        ":3:2: 1 field; must be 2, as in the first line. Correct the row, or remove it.");
  CHECK(ErrorOf("widht,height\n3,1\n", Named()) ==
        ":1:1: no column \"width\"; the model has this feature. Is it \"widht\"? Name the columns as "
        "the training data has them.");
  CHECK(ErrorOf("1,2,3,4\n", Named()) ==
        ":1:1: 4 columns; the model has 2 features, and a row may have a label besides. Is it the "
        "right file?");
  CHECK(Begins(ErrorOf("width,height,width\n1,2,3\n", Named()), ":1:14: more than one column \"width\""));
  CHECK(Begins(ErrorOf("width height\n3 1\n", Named()), ":1:1: no column \"width\""));
}

TEST_CASE("rows: JSON lines have features as a list or by name, and ids") {
  const RowBlock block = ReadAll(
      "{\"features\": [3, 1], \"id\": \"a\"}\n\n{\"height\": 2, \"width\": 4, \"tree\": 7}\r\n"
      "[3, 1]\n",
      Named());
  CHECK(block.features == Floats{4, -4.5, 6, -4, 4, -4.5});
  CHECK(block.ids == std::vector<std::string>{"\"a\"", "", ""});
  CHECK(Features("\xef\xbb\xbf[3, 1]\n", Named()) == Floats{4, -4.5});
  CHECK(Features(" \n\t\r\n  [3, 1]\n\n [3, 1]\n", Named()) == Floats{4, -4.5, 4, -4.5});
  CHECK(Features("\xef\xbb\xbfheight,width\n1,3\n", Named()) == Floats{4, -4.5});
}

TEST_CASE("rows: features of one name are no JSON members, and one that is called features may be") {
  RowSpec spec = Unnamed(2);
  spec.form.features = {"size", "size"};
  CHECK(ErrorOf("{\"size\": 1}\n", spec) ==
        ":1: features by name, and 2 of the model are called \"size\"; give them as "
        "{\"features\": [1, 2]}, in the training data's order.");
  CHECK(Features("{\"features\": [1, 2]}\n", spec) == Floats{1, 2});
  spec.form.features = {"features", "size"};
  CHECK(Features("{\"size\": 2, \"features\": 1}\n{\"features\": [3, 4]}\n", spec) == Floats{1, 2, 3, 4});
  CHECK(Has(ErrorOf("{\"features\": 3}\n", Named()), "features is no list"));
}

TEST_CASE("rows: a header may begin as JSON does, and a format that is known is not guessed") {
  RowSpec spec = Unnamed(2);
  spec.form.features = {"[temp]", "x"};
  spec.label = "{y}";
  CHECK(Features("[temp],x\n3,1\n", spec) == Floats{3, 1});
  CHECK(Features("{y},x,[temp]\r\n7,1,3\r\n", spec) == Floats{3, 1});
  CHECK(Features(" [temp] , x\n3,1\n", spec) == Floats{3, 1});
  CHECK(Features("{\"[temp]\":3,\"x\":1}\n[3, 1]\n", spec) == Floats{3, 1, 3, 1});
  spec.format = RowFormat::kCsv;
  spec.header = true;
  spec.labels = LabelRules();
  CHECK(ReadAll("{y},[temp],x\n7,3,1\n", spec).targets == Floats{7});
  spec = Unnamed(1);
  spec.form.classes = {"[a]", "[b]"};
  spec.form.label_column = 0;
  spec.label = "0";
  spec.labels = kTwoClasses;
  spec.format = RowFormat::kCsv;
  spec.header = false;
  CHECK(ReadAll("[b],1\n[a],2\n", spec).classes == std::vector<int32_t>{1, 0});
}

TEST_CASE("rows: JSON lines have no labels to evaluate by, which is told before they are read as CSV") {
  RowSpec spec = Named();
  spec.format = RowFormat::kCsv;
  spec.header = true;
  spec.labels = kTwoClasses;
  CHECK(ErrorOf("{\"features\": [3, 1], \"tree\": \"oak\"}\n", spec) ==
        ": is JSON lines (--data); rows with labels are read of CSV and IDX files only. Save it as CSV, "
        "or use dtrain predict.");
}

TEST_CASE("rows: what cannot be read of JSON lines is told with its place") {
  // A zero byte ends the text for the JSON parser; what stands behind it is no part of the row.
  CHECK(Begins(ErrorOf(std::string("{\"features\": [3, 1]}\0\"id", 24), Named()), ":1:21: not JSON"));
  CHECK(Begins(ErrorOf("{\"features\": [3, 1]}\n{\"features\": [3, 1}\n", Named()), ":2:19: not JSON"));
  CHECK(ErrorOf("{\"features\": [3]}\n", Named()) == ":1: 1 feature; must be 2, as the model has.");
  CHECK(ErrorOf("{\"width\": 3, \"hight\": 1}\n", Named()) ==
        ":1: no \"height\"; the model has this feature. Is it \"hight\"? Add it.");
  CHECK(ErrorOf("{\"width\": null, \"height\": 1}\n", Named()) == ":1: width = null; must be a number.");
  CHECK(ErrorOf("[3, null]\n", Unnamed(2)) == ":1: feature 2 = null; must be a number.");
  CHECK(Has(ErrorOf("{\"width\": 1e39, \"height\": 1}\n", Named()), "must be at most 3.4e38"));
  CHECK(Begins(ErrorOf("[3, 1]\n{\"width\": 1e400, \"height\": 1}\n", Named()), ":2: a number beyond"));
  CHECK(ErrorOf("{\"features\": [3, 1], \"features\": [3, 1]}\n", Named()) ==
        ":1: \"features\" stands twice in one object. Leave one.");
  CHECK(Has(ErrorOf("{\"width\": 3, \"height\": 1, \"width\": 3}\n", Named()), "\"width\" stands twice"));
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  CHECK(Has(ErrorOf("{\"features\": [3, 1], \"id\": " + deep + "}\n", Named()), "nested more than 64 deep"));
  CHECK(Has(ErrorOf("{\"width\": 3}\n", Unnamed(1)), "those of the model have none"));
}

TEST_CASE("rows: IDX images are bytes, with labels where they are asked for") {
  RowSpec spec = Unnamed(6);
  spec.pixels = true;
  const RowBlock images = ReadAll(IdxImageContent(3, 2, 3), spec);
  CHECK(images.rows == 3);
  CHECK(images.bytes.size() == 18);
  CHECK(images.bytes[17] == 17);
  CHECK(images.features.empty());
  spec.labels = LabelRules{3, "model.outputs = 3", "raise model.outputs"};
  const std::string labels = WritePlain("labels", IdxLabelContent({2, 0, 1}));
  CHECK(ReadAll(IdxImageContent(3, 2, 3), spec, labels).classes == std::vector<int32_t>{2, 0, 1});
  CHECK(Has(UserErrorOf([&] { ReadAll(IdxImageContent(4, 2, 3), spec, labels); }), "number of labels = 3"));
  const std::string cut = IdxImageContent(3, 2, 3).substr(0, 30);
  spec.labels.reset();
  CHECK_FALSE(UserErrorOf([&] { ReadAll(cut, spec); }).empty());
  const std::string more = IdxImageContent(3, 2, 3) + "x";
  CHECK(Has(UserErrorOf([&] { ReadAll(more, spec); }), "more bytes follow"));
  CHECK(Features("0,51,255,0,0,0\n", spec)[1] == doctest::Approx(0.2));
}

TEST_CASE("rows: a value that is no byte is none of an image's") {
  RowSpec spec = Unnamed(2);
  spec.pixels = true;
  CHECK(Features("0,255\n", spec) == Floats{0, 1});
  for (const char* value : {"-1", "256", "255.5", "-0.001"}) {
    CAPTURE(value);
    const std::string rule = fmt::format(" = {}; must be 0 to 255, as the bytes of images", value);
    CHECK(Has(ErrorOf(fmt::format("7,{}\n", value), spec), rule));
    CHECK(Has(ErrorOf(fmt::format("[7, {}]\n", value), spec), rule));
  }
}

TEST_CASE("rows: names of columns and classes that are not UTF-8 are refused at their place") {
  const std::string rule = " is not UTF-8; names of columns and classes must be. Save the file as CSV UTF-8";
  CHECK(Begins(ErrorOf("width,height,caf\xe9\n1,2,3\n", Named()), ":1:14: the name caf\\xe9" + rule));
  RowSpec spec = Named();
  const std::string class_row = "width,height,tree\n1,2,oak\n1,2,ch\xeane\n";
  CHECK(ErrorOf(class_row, spec) == "");
  spec.labels = kTwoClasses;
  CHECK(Begins(ErrorOf(class_row, spec), ":3:5: the name ch\\xeane" + rule));
}

TEST_CASE("rows: an id is as it was written, wherever it stands and whatever is around it") {
  const auto id = [](const std::string& members) {
    return ReadAll(" {\"features\": [3, 1]" + members + "}\n", Named()).ids[0];
  };
  CHECK(id(R"(,"id":123456789012345678901234567890)") == "123456789012345678901234567890");
  CHECK(id(R"(, "a" : [1, {"id": 2}] , "id" : 1.10 , "b": "id" )") == "1.10");
  CHECK(id(R"(, "id": {"id": [1, "}, \"]"]} )") == R"({"id": [1, "}, \"]"]})");
  CHECK(id(R"(, "a": "\\", "i\u0064": "x\"y")") == R"("x\"y")");
  CHECK(id(R"(, "id":  null	)") == "null");
  CHECK(id("") == "");
  CHECK(id(R"(, "a": "id", "b": {"id": 1}, "idx": 2)") == "");
  CHECK(ReadAll(R"({"id":1.10,"features":[3,1]})", Named()).ids[0] == "1.10");
}

// What is kept of all rows, one after the other.
std::vector<std::string> KeptOf(const std::string& content, RowSpec spec,
                                const std::vector<std::string>& keep,
                                std::vector<std::string>* names = nullptr) {
  spec.keep = keep;
  RowReader rows(WritePlain("keep", content), spec);
  RowBlock block(spec.inputs, keep.size());
  while (rows.Next(&block)) continue;
  if (names != nullptr) *names = rows.KeptNames();
  std::vector<std::string> kept;
  for (const KeptField& field : block.kept) kept.push_back((field.is_json ? "json " : "") + field.text);
  return kept;
}

TEST_CASE("rows: columns are kept as they are, by name or number, features and others") {
  std::vector<std::string> names;
  const std::string content = "id,width,note,height\n007,3,\"a, \"\"b\"\"\",1\n8,4.50,,2\n";
  CHECK(KeptOf(content, Named(), {"note", "id", "1"}, &names) ==
        std::vector<std::string>{"a, \"b\"", "007", "3", "", "8", "4.50"});
  CHECK(names == std::vector<std::string>{"note", "id", "width"});
  CHECK(KeptOf("3,1\n4,2\n", Unnamed(2), {"1"}, &names) == std::vector<std::string>{"1", "2"});
  CHECK(names == std::vector<std::string>{"1"});
  CHECK(Has(UserErrorOf([&] { KeptOf(content, Named(), {"nota"}); }),
            ":1:1: no column \"nota\" (--keep); the columns are \"id\", \"width\", \"note\" and "
            "\"height\". Did you mean \"note\"?"));
}

TEST_CASE("rows: members of JSON rows are kept as they are written, and must be there") {
  const std::string row = "{\"width\": 3, \"height\": 1, \"at\": [1, 2.0], \"who\": \"x\"}\n";
  CHECK(KeptOf(row, Named(), {"who", "at"}) == std::vector<std::string>{"json \"x\"", "json [1, 2.0]"});
  CHECK(
      Has(UserErrorOf([&] { KeptOf("[3, 1]\n", Named(), {"who"}); }), ":1: no \"who\", which --keep names"));
}

TEST_CASE("rows: what is behind a row that cannot be read is read, in each format") {
  const std::string json =
      "{\"id\": 1, \"width\": 3, \"height\": 1}\nx\n[1, 2]\n{\"id\": 4, \"width\": 3}\n"
      "{\"id\": 5, \"width\": 4, \"height\": 2}\n";
  const std::tuple<std::string, RowSpec, const char*> files[] = {
      {"id,width,height\n1,3,1\n2,x,1\n3\n\"4\"4,3,1\n5,4,2\n", Named(), "id"},
      {json, Named(), "id"},
      {"1 1:1\n2 0:1\n3 1\n4 1:x\n5 3:1\n", Sparse(DataFormat::kLibsvm, 9), "label"}};
  for (auto [content, spec, keep] : files) {
    CAPTURE(content);
    spec.keep = {keep};
    RowReader rows(WritePlain("skip", content), spec);
    RowBlock block(spec.inputs, spec.keep.size());
    CHECK(rows.Next(&block));
    CHECK(rows.HasMore());
    int faults = 0;
    for (bool more = true; more;) {
      try {
        more = rows.Next(&block);
      } catch (const RowFault&) {
        ++faults;
        block.DropUnfinished();
        rows.SkipFault();
      }
    }
    CHECK_FALSE(rows.HasMore());
    CHECK(faults == 3);
    CHECK(block.rows == 2);
    CHECK(block.sparse.count() == (HasSparseRows(spec.data) ? 2 : 0));
    CHECK(block.features == (HasSparseRows(spec.data) ? Floats{} : Floats{4, -4.5, 6, -4}));
    REQUIRE(block.kept.size() == 2);
    CHECK(block.kept[0].text == "1");
    CHECK(block.kept[1].text == "5");
  }
}

TEST_CASE("row reader: a file without rows keeps the names of what is kept, for the files behind it") {
  RowSpec spec;
  spec.inputs = 1;
  spec.keep = {"id", "2"};
  CHECK(RowReader(WritePlain("empty", "\n"), spec).KeptNames() == spec.keep);
}

std::vector<uint64_t> IdsOf(const RowBlock& block, int64_t row) {
  const std::vector<int64_t>& offsets = block.sparse.offsets;
  return {block.sparse.ids.begin() + offsets[static_cast<size_t>(row)],
          block.sparse.ids.begin() + offsets[static_cast<size_t>(row) + 1]};
}

TEST_CASE("row reader: sparse rows come with their features, and with labels where these are asked for") {
  RowSpec spec = Sparse(DataFormat::kLibsvm, 9);
  const std::string text = "+1 1:2 9:1\n\n# none\n-1\n+1 4:0 3:1";
  const RowBlock plain = ReadAll(text, spec);
  CHECK(plain.rows == 3);
  CHECK(plain.classes.empty());
  CHECK(IdsOf(plain, 0) == std::vector<uint64_t>{0, 8});
  CHECK(IdsOf(plain, 1).empty());
  CHECK(IdsOf(plain, 2) == std::vector<uint64_t>{2});
  spec.labels = kTwoClasses;
  RowBlock block = ReadAll(text, spec);
  CHECK(block.classes == std::vector<int32_t>{1, 0, 1});
  CHECK(block.AsBatch().sparse.offsets != nullptr);
  CHECK(block.AsBatch().rows == 3);
  CHECK(Begins(ErrorOf("1 1:1\n2:1\n", spec), ":2:1: 2:1 stands where the label must"));
}

TEST_CASE("row reader: features that the model has not are left out of libsvm rows and counted") {
  RowSpec spec = Sparse(DataFormat::kLibsvm, 6);
  for (const bool labels : {false, true}) {
    if (labels) spec.labels = kTwoClasses;
    RowReader rows(WritePlain("new.svm", "1 1:1 3:0.5 9:1\n-1 2:1\n1 7:0.25 9:2\n"), spec);
    RowBlock block(spec.inputs);
    while (rows.Next(&block)) continue;
    CHECK(block.rows == 3);
    CHECK(IdsOf(block, 0) == std::vector<uint64_t>{0, 2});
    CHECK(IdsOf(block, 2).empty());
    CHECK(rows.skipped().beyond == 3);
  }
}

TEST_CASE(
    "row reader: rows of vw without a label are predicted, and left out and counted where labels are asked") {
  RowSpec spec = Sparse(DataFormat::kVw, 1 << 18);
  const std::string text = "1 |a x\n|a y\n'tag |a z\n-1 |a x\n";
  CHECK(ReadAll(text, spec).rows == 4);
  spec.labels = kTwoClasses;
  RowReader rows(WritePlain("some.vw", text), spec);
  RowBlock block(spec.inputs);
  while (rows.Next(&block)) continue;
  CHECK(block.classes == std::vector<int32_t>{1, 0});
  CHECK(rows.skipped().unlabelled == 2);
}

TEST_CASE("row reader: with data.offset a row of vw has its initial prediction, else 0") {
  RowSpec spec = Sparse(DataFormat::kVw, 1 << 18);
  spec.data.offset = kInitialOffset;
  const RowBlock block = ReadAll("1 2 0.5 |a x\n1 2 -1 'tag|a x\n1 2 |a x\n|a x\n", spec);
  CHECK(block.row_offsets == Floats{0.5, -1, 0, 0});
  CHECK(block.weights.empty());
  CHECK(block.ids[1] == "\"tag\"");
  CHECK(Begins(ErrorOf("1 2 inf |a x\n", spec), ":1:5: the initial prediction = inf; must be"));
  CHECK(
      Begins(ErrorOf("1 2 3 4 |a x\n", spec),
             ":1:7: before the first | must be at most a label, a weight, an initial prediction and a tag."));
}

TEST_CASE("row reader: a tag of a vw row is its id, and its importance counts with labels alone") {
  RowSpec spec = Sparse(DataFormat::kVw, 1 << 18);
  CHECK(ReadAll("1 2 tag|a x\n|a x\n", spec).ids == std::vector<std::string>{"\"tag\"", ""});
  spec.labels = LabelRules{std::nullopt, "model.kind = linear", ""};
  const RowBlock block = ReadAll("1 2 tag|a x\n3 |a x\n", spec);
  CHECK(block.targets == Floats{1, 3});
  CHECK(block.weights == Floats{2, 1});
}

TEST_CASE(
    "row reader: a table with hashed columns may lack what is no feature, and has the columns of "
    "data.train") {
  RowSpec spec = Sparse(DataFormat::kCsv, 1 << 18);
  DataConfig& data = spec.data;
  data.train.label = "y";
  data.train.header = true;
  data.hash = {"a"};
  data.ignore = {"id"};
  data.test = data.train;
  const RowBlock whole = ReadAll("id,a,b,y\n7,x,2,1\n", spec);
  CHECK(whole.sparse.ids.size() == 2);
  CHECK(ReadAll("a,b\nx,2\n", spec).sparse.ids == whole.sparse.ids);
  CsvColumns train;
  train.names = {"id", "a", "b", "y"};
  train.count = 4;
  train.label = 3;
  train.inputs = {1, 2};
  spec.train_columns = train;
  CHECK(ReadAll("more,b,a\n9,2,x\n", spec).sparse.ids == std::vector<uint64_t>(whole.sparse.ids));
  CHECK(Begins(ErrorOf("a,y\nx,1\n", spec), ":1:1: no column \"b\""));
}

TEST_CASE("row file: a mark is where the next row begins, in each format") {
  RowSpec images = Unnamed(6);
  images.pixels = true;
  const std::pair<std::string, RowSpec> files[] = {{"3,1\n4,2\n5,3\n", Unnamed(2)},
                                                   {"[3,1]\n\n[4,2]\n[5,3]\n", Unnamed(2)},
                                                   {IdxImageContent(3, 2, 3), images},
                                                   {"1 1:2\n2 2:1\n3 1:1\n", Sparse(DataFormat::kLibsvm, 2)}};
  for (const auto& [content, spec] : files) {
    CAPTURE(content);
    RowContext context;
    context.spec = &spec;
    context.inputs = spec.inputs;
    context.labels = false;
    SkippedRows skipped;
    const std::unique_ptr<RowFile> file =
        OpenRowFile(spec.data, context, OpenInput(WritePlain("rows", content), "--data"), &skipped);
    CHECK(file->inputs() == spec.inputs);
    ParsedRows all, again;
    REQUIRE(file->Next(&all, nullptr));
    const TextMark second = file->mark();
    all.Clear();
    while (file->Next(&all, nullptr)) continue;
    file->GoTo(second, 0);
    while (file->Next(&again, nullptr)) continue;
    CHECK(again.features == all.features);
    CHECK(again.bytes == all.bytes);
    CHECK(again.sparse.ids == all.sparse.ids);
    CHECK(again.features.size() + again.bytes.size() + again.sparse.ids.size() > 0);
  }
}

}  // namespace
}  // namespace dtrain
