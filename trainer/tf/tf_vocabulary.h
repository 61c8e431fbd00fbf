// Columns whose texts are hashed here, and which TensorFlow has as variables of their own: row i of such a
// variable belongs to line i of a vocabulary file. Here that is the row of the key that data.hash makes of
// the text in the column. Import and export see a table as such variables, embeddings/E1[color] of as many
// rows as the file has lines, and its biases behind them. Thread: any; plain values and free functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/tf/tf_checkpoint.h"

namespace dtrain {

// Whether the rows of a table are those of texts in columns: of CSV and TFRecord with data.hash or data.bags,
// and of criteo's C1 to C26.
bool HasTextColumns(const DataConfig& data);

// VocabularyColumn: the features of a column.
struct VocabularyColumn {
  std::string name;
  std::string path;                // of the vocabulary; empty: a column of numbers, with one feature
  std::vector<std::string> texts;  // by line
  std::vector<uint64_t> keys;      // by line: the feature
  // Returns "weights/W1[color]" for "weights/W1".
  std::string NameOf(const std::string& variable) const { return variable + "[" + name + "]"; }
};

// Reads the vocabularies of "COLUMN=FILE". `inputs`: of the form of the rows (HasHashedColumns()). Columns of
// numbers that have a row of the table are there too. With `all` each column of texts must have one, or be
// named without a file: then it is left out. Throws UserError for names that are no such columns, and for two
// lines with one key.
std::vector<VocabularyColumn> ReadVocabularies(const std::vector<std::string>& vocabularies,
                                               const Config& config, const std::vector<InputColumn>& inputs,
                                               bool all);

// The same of a dense model of one layer, whose rows have the columns of a table: `keys` are rows of
// weights/W1, and kNoRow where no text of the rows is that of the line. Throws UserError for a text on two
// lines, and for one that would be a text of the rows without the blanks at its end.
constexpr uint64_t kNoRow = ~uint64_t{0};
std::vector<VocabularyColumn> ReadDenseVocabularies(const std::vector<std::string>& vocabularies,
                                                    const InputForm& form, bool all);

// The variables of a table by column, and its biases: "weights/W1[color]", "embeddings/E1[color]",
// "biases/b1". Without offsets.
std::vector<Variable> ColumnVariables(const std::vector<Variable>& of_table,
                                      const std::vector<VocabularyColumn>& columns);

// Throws UserError, with both numbers, for each tensor that `maps` ("theirs=ours") give to a column and that
// has not a row for each line.
void CheckLines(const TfCheckpoint& checkpoint, const std::vector<std::string>& maps,
                const std::vector<VocabularyColumn>& columns);

// Returns the weights whose rows are inputs by column: "deep/W1" of a wide_deep model that joins columns of
// texts, "weights/W1" of an mlp on columns of CSV or TFRecord; empty: the model has none.
std::string FirstLayerOf(const Config& config);

// InputOrder: the order that TensorFlow has the inputs of such a layer in. Here they are the columns in the
// order of the data, those of texts before the numbers if they are hashed.
struct InputOrder {
  std::vector<int64_t> ours;  // of each row of the weights there its row here; empty: the same
  std::string said;           // a line for the user
  std::string layer{};        // FirstLayerOf()
  // Puts the rows of such weights, [ours.size(), cols], in our order, or in TensorFlow's.
  void Apply(bool to_ours, float* values, int64_t cols) const;
};
// `given`: names of columns with commas between them; empty: as here, or if `theirs`, the name of the layer's
// weights, is one of Estimator's, by name as it sorts them. Of data.categories it has a row for each text, in
// the order of `vocabularies` (indicator_column). Unset: the order is ours, or the model has none. Throws
// UserError unless `given` has each column once, and each vocabulary each text of the rows.
std::optional<InputOrder> OrderOfInputs(const Config& config, const InputForm& form,
                                        const std::vector<std::string>& vocabularies,
                                        const std::string& given, const std::string& theirs);

// Throws the UserError of --vocabulary or --inputs for another model. `whose`: "the config's".
[[noreturn]] void ThrowNoTexts(const char* whose);

// ColumnRows: what a table has for the columns. Plain data.
struct ColumnRows {
  std::vector<float> rows;        // by column and line, and behind them that of the bias
  std::vector<std::string> said;  // lines about texts without a row, and rows without a text
};
// Reads the rows, with or without their slots. A text without a row has the values that rows begin with, as
// dtrain predict has them.
ColumnRows ReadColumns(const Config& config, const std::vector<VocabularyColumn>& columns,
                       CheckpointReader* checkpoint, bool with_slots);

}  // namespace dtrain
