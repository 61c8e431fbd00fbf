#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include "cmd/common/program.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/tables/profile_text.h"
#include "cmd/tables/proposal.h"
#include "cmd/tables/tables.h"
#include "trainer/config/data_config.h"
#include "trainer/survey/table_profile.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::string LabelText(const TableProfile& table, const LabelChoice& label) {
  const std::string name = ColumnName(table, label.column);
  if (label.reason.empty()) return fmt::format("label: {}", name);
  return fmt::format("label: {}, because {}; another one: --label NAME", name, label.reason);
}

// The table's path for a config that is written to `config`: paths in a file are relative to the file. Links
// among the directories are followed, since ".." behind a link leads elsewhere.
std::string PathFrom(const std::string& config, const std::string& table) {
  const fs::path path = table, directory = fs::path(config).parent_path();
  if (path.is_absolute() || IsPipe(table) || directory.empty()) return table;
  const fs::path from = fs::weakly_canonical(fs::absolute(directory));
  const fs::path to = fs::weakly_canonical(fs::absolute(path).parent_path()) / path.filename();
  return to.lexically_relative(from).string();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line.substr(line.find_first_not_of(' ')));
  return lines;
}

// The first of some lines, and how many more there are; empty if there are none.
std::string FirstOf(const std::string& text) {
  const std::vector<std::string> lines = LinesOf(text);
  if (lines.size() < 2) return lines.empty() ? "" : lines[0];
  return fmt::format("{} (and {} more; dtrain check shows them)", lines[0], lines.size() - 1);
}

// What a run leaves out of the rows of a table; empty: nothing is known to be wrong.
std::string FaultNote(const TableProfile& table) {
  const std::string fault = FirstOf(FaultsText(table));
  return fault.empty() ? "" : "fault; data.bad_rows: skip leaves such rows out: " + fault;
}

Proposal Propose(const TableProfile& table, const LabelChoice& label, const std::string& path,
                 const std::string& config, const std::string& test) {
  const std::string train = PathFrom(config, path);
  if (test.empty()) return ProposeConfig(table, label, train);
  TableProfile like = table;
  ColumnProfile& target = like.columns[label.column];
  target.type = ColumnType::kText;  // its values are compared as classes, or as they are
  target.no_days.clear();
  const TestTable other{ProfileTable(test, target.name, &like), PathFrom(config, test)};
  Proposal proposal = ProposeConfig(table, label, train, &other);
  if (const std::string note = FaultNote(other.profile); !note.empty()) proposal.notes.push_back(note);
  return proposal;
}

void PrintPart(const char* title, const std::string& lines) {
  if (!lines.empty()) fmt::print("\n{}:\n{}", title, lines);
}

void PrintProposal(const TableProfile& table, const CheckTableArguments& arguments) {
  const LabelChoice label = ChooseLabel(table, arguments.label);
  const std::string name = TableName(arguments.path) + ".yaml";
  const Proposal proposal = Propose(table, label, arguments.path, name, "");
  fmt::print("\n{}\n", LabelText(table, label));
  for (const std::string& note : proposal.notes) fmt::print("{}\n", note);
  if (IsPipe(arguments.path)) {
    fmt::print("\nOf rows in a file, dtrain init FILE writes a config that would train on them.\n");
    return;
  }
  const std::string wanted = arguments.label.empty() ? "" : " --label " + arguments.label;
  fmt::print("\nThis would train on it; dtrain init {}{} writes it to {}:\n\n{}", arguments.path, wanted,
             name, proposal.yaml);
}

void PrintJson(const TableProfile& table, const CheckTableArguments& arguments) {
  Json columns = Json::array();
  for (const ColumnProfile& column : table.columns) {
    columns.push_back({{"name", column.name},
                       {"type", TypeName(column.type)},
                       {"missing", column.missing},
                       {"distinct", column.distinct},
                       {"more_distinct", column.more_distinct}});
  }
  const LabelChoice label = ChooseLabel(table, arguments.label);
  const std::string config = TableName(arguments.path) + ".yaml";
  const Json document = {
      {"file", table.path},
      {"rows", table.rows},
      {"columns", columns},
      {"faults", LinesOf(FaultsText(table))},
      {"readings", LinesOf(ReadingsText(table, label.column))},
      {"suspects", LinesOf(SuspectsText(table))},
      {"label", ColumnName(table, label.column)},
      {"yaml", IsPipe(arguments.path) ? "" : Propose(table, label, arguments.path, config, "").yaml}};
  fmt::print("{}\n", document.dump(2));
}

// Writes a file that is not there yet.
void WriteNew(const std::string& path, const std::string& content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) {
    throw UserError("{}: is there already, and init replaces no file. Choose another: --out NAME.yaml.",
                    path);
  }
  const auto text = [&](int error) {
    return fmt::format("{}: cannot be written: {}. Free some space, or choose another: --out NAME.yaml.",
                       path, ErrnoText(error));
  };
  if (fd < 0) ThrowUnwritable(text(errno), errno);
  const int failure = WriteAll(fd, content);
  close(fd);
  if (failure == 0) return;
  unlink(path.c_str());
  throw FileError(text(failure), failure);
}

}  // namespace

int RunCheckTableCommand(const CheckTableArguments& arguments) {
  EndWithReader();
  const TableProfile table = ProfileTable(arguments.path, arguments.label);
  if (arguments.json) {
    PrintJson(table, arguments);
    return 0;
  }
  fmt::print("{}", ColumnsText(table));
  PrintPart(
      "faults, the first of each kind; training stops there unless data.bad_rows is skip or the column is "
      "ignored",
      FaultsText(table));
  PrintPart("read in a way of its own", ReadingsText(table));
  PrintPart("suspects", SuspectsText(table));
  PrintProposal(table, arguments);
  return 0;
}

namespace {

Proposal ProposeTable(const InitArguments& arguments, const std::string& out) {
  const TableProfile table = ProfileTable(arguments.path, arguments.label);
  const LabelChoice label = ChooseLabel(table, arguments.label);
  Proposal proposal = Propose(table, label, arguments.path, out, arguments.test);
  constexpr size_t kShown = 6;
  std::vector<std::string> first = LinesOf(ReadingsText(table, label.column));
  std::stable_partition(first.begin(), first.end(), [](const std::string& line) {
    // What is asked is in no case left out.
    return line.find(", as NAME=") != line.npos || line.find("; without the unit") != line.npos;
  });
  if (first.size() > kShown) {
    const size_t more = first.size() - kShown + 1;
    first.resize(kShown - 1);
    first.push_back(fmt::format("and {} more columns of this kind; dtrain check shows them", more));
  }
  first.push_back(LabelText(table, label));
  proposal.notes.insert(proposal.notes.begin(), first.begin(), first.end());
  if (const std::string note = FaultNote(table); !note.empty()) proposal.notes.push_back(note);
  if (const std::string doubt = FirstOf(HeaderDoubts(table)); !doubt.empty()) proposal.notes.push_back(doubt);
  return proposal;
}

Proposal ProposeSparse(const SparseProfile& rows, const InitArguments& arguments, const std::string& out) {
  if (!arguments.label.empty()) {
    throw UserError("--label {}: {} has sparse rows, whose label stands in front of each. Leave it out.",
                    arguments.label, arguments.path);
  }
  const std::string path = PathFrom(out, arguments.path);
  if (arguments.test.empty()) return ProposeSparseConfig(rows, path);
  return ProposeSparseConfig(rows, path, ProfileSparseRows(arguments.test), PathFrom(out, arguments.test));
}

}  // namespace

int RunInitCommand(const InitArguments& arguments, const ErrorLines& errors) {
  const bool prints = arguments.out == "-";
  const std::string out = arguments.out.empty() ? TableName(arguments.path) + ".yaml" : arguments.out;
  // Refuses before the table is read, unless that is missing.
  const bool has_table = access(arguments.path.c_str(), F_OK) == 0;
  if (IsPipe(arguments.path)) {
    throw UserError(
        "{}: init reads files, as a run does that holds out some of the rows. Save them to one: {}{}.",
        arguments.path, arguments.path == "-" ? "COMMAND" : arguments.path.substr(5), " > FILE");
  }
  if (!prints && has_table && access(out.c_str(), F_OK) == 0) WriteNew(out, "");
  const std::string config = prints ? "x.yaml" : out;
  const SparseProfile rows = ProfileSparseRows(arguments.path);
  const bool sparse = rows.format != DataFormat::kNone;
  const Proposal proposal = sparse ? ProposeSparse(rows, arguments, config) : ProposeTable(arguments, config);
  for (const std::string& note : proposal.notes) {
    if (prints) {
      errors.Print(note);
    } else {
      fmt::print("{}\n", note);
    }
  }
  if (prints) {
    fmt::print("{}", proposal.yaml);
    return 0;
  }
  WriteNew(out, proposal.yaml);
  fmt::print("wrote {}. Next: {}\n", out, ShellLine({OwnWords().at(0), "local", out}));
  return 0;
}

}  // namespace dtrain
