#include "cmd/grammar/manual.h"

#include <fmt/core.h>

#include <cctype>
#include <sstream>

#include "trainer/config/fields.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

// A text as roff: nothing in it is a request, and a minus stays one that can be copied.
std::string Roff(const std::string& text) {
  std::string roff;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) roff += "\\&";
    line_begins = c == '\n';
    if (c == '`') continue;  // Markdown's
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string Paragraph(const std::string& text) { return ".PP\n" + Roff(text) + "\n"; }

// As it stands, line by line.
std::string Block(const std::string& text) { return ".PP\n.nf\n.RS 2\n" + Roff(text) + "\n.RE\n.fi\n"; }

std::string Item(const std::string& name, const std::string& type, const std::string& text) {
  const std::string value = type.empty() ? "" : fmt::format(" \\fI{}\\fR", Roff(type));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", Roff(name), value, Roff(text));
}

std::string Options(const CommandText& command) {
  std::string roff;
  for (const OptionText& option : command.options) roff += Item(option.names, option.type, option.text);
  return roff;
}

// A footer of --help: paragraphs, of which those that open with "Examples:" or the like are blocks.
// `heading` makes a heading of that word.
template <typename Heading>
std::string Footer(const std::string& footer, Heading heading) {
  std::string roff;
  for (size_t begin = 0; begin < footer.size();) {
    const size_t end = std::min(footer.find("\n\n", begin), footer.size());
    const std::string paragraph = footer.substr(begin, end - begin);
    begin = end + 2;
    const size_t line_end = paragraph.find('\n');
    if (line_end != std::string::npos && paragraph[line_end - 1] == ':') {
      roff += heading(paragraph.substr(0, line_end - 1)) + Block(paragraph.substr(line_end + 1));
    } else {
      roff += Paragraph(paragraph);
    }
  }
  return roff;
}

std::string Capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string Synopsis(const std::string& name, const CommandText& command) {
  std::string roff = fmt::format(".PP\n\\fB{}\\fR", Roff(name));
  for (const OptionText& option : command.options) {
    if (option.is_argument) roff += fmt::format(" \\fI{}\\fR", Roff(option.name));
  }
  return roff + " [\\fIoptions\\fR]\n";
}

std::string Commands(const std::vector<CommandText>& commands) {
  std::string roff;
  for (const CommandText& command : commands) {
    const std::string name = "dtrain " + command.name;
    roff += fmt::format(".SS {}\n", Roff(name)) + Synopsis(name, command) + Paragraph(command.text + ".");
    roff += Options(command);
    roff += Footer(command.footer, [](const std::string& word) { return Paragraph(word + ":"); });
  }
  return roff;
}

// ">= 1; default: 100".
std::string ValueOf(const Field& field) {
  static const Config defaults;
  const Value value = field.get(defaults);
  const std::string limits = LimitsText(field);
  const std::string without = IsNull(value) ? field.unset : ValueText(field, value);
  return (limits.empty() ? "" : limits + "; ") + (field.required ? "required" : "default: " + without);
}

std::string Keys() {
  std::string roff;
  for (const Field& field : Fields()) {
    const std::string only = field.only_key.empty() ? ""
                                                    : fmt::format("With {}: {}. ", field.only_key,
                                                                  Joined(field.only_values, ", "));
    roff += Item(field.key, ValueOf(field), only + field.help);
  }
  return roff;
}

constexpr const char* kConfig =
    R"(One YAML file describes the whole run, and every task reads the same one. --set KEY=VALUE beats the file, and the
file beats the default. An unknown key, a wrong type and a value out of range are errors, all told at once. Input paths
in the file are relative to the file; output paths, and all paths in --set, to the working directory.)";

std::string Variables() {
  return Item("CUDA_VISIBLE_DEVICES", "",
              "The GPUs that there are for this process, as CUDA understands it. Set to nothing: none.") +
         Item("LD_LIBRARY_PATH", "", "Where cuBLAS is looked for besides the system's own folders.") +
         Item("TF_CONFIG; SLURM_...; PMI_..., PMIX_..., OMPI_...", "",
              "Which task of which cluster this process is, with --from alone.");
}

std::string Places() {
  return Item("checkpoint.dir/step-000012000/", "",
              "A checkpoint, complete under this name, with the config.yaml of its run.") +
         Item("checkpoint.dir/replaced-step-000012000-7/", "",
              "A complete one that made room when its step was saved again.") +
         Item("checkpoint.dir/best", "",
              "The name of the checkpoint with the best evaluation (eval.keep_best).") +
         Item("checkpoint.dir/.in-use", "", "Whose run writes there.") +
         Item("log.dir/", "", "The log of each task, appended to.") +
         Item("summary.dir/chief/, worker-1/, ps-0/, eval/", "",
              "Event files for TensorBoard; eval/ is of dtrain eval --follow.") +
         Item("--result FILE", "", "One JSON document, written at every ending.");
}

}  // namespace

std::string Joined(const std::vector<std::string>& items, const std::string& separator) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

std::string ManPage(const CommandLineText& line) {
  const CommandText& root = line.root;
  std::string roff = fmt::format(
      ".\\\" Made by cmd/grammar/write_manual.\n.TH DTRAIN 1 \"\" \"dtrain {}\"\n.nh\n.ad l\n", kVersion);
  roff += ".SH NAME\ndtrain \\- trains models with parameter servers and workers, as a YAML file says\n";
  roff += ".SH SYNOPSIS\n" + Synopsis("dtrain", root);
  for (const CommandText& command : line.commands) roff += Synopsis("dtrain " + command.name, command);
  roff += ".SH DESCRIPTION\n" + Paragraph(root.text);
  roff += ".SH OPTIONS\n" + Paragraph("Of the form without a command:") + Options(root);
  roff += ".SH COMMANDS\n" + Commands(line.commands);
  roff += Footer(root.footer, [](const std::string& word) { return ".SH " + Capitals(word) + "\n"; });
  roff += ".SH CONFIG FILE\n" + Paragraph(kConfig) + Keys();
  return roff + ".SH ENVIRONMENT\n" + Variables() + ".SH FILES\n" + Places();
}

}  // namespace dtrain
