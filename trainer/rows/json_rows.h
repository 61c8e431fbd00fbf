// JsonRows: one row a line, as {"features": [1, 2]}, {"width": 1, "height": 2} or [1, 2]; "id" is passed on,
// and what the model does not know is not read. Empty lines do not count. Labels cannot be asked for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "trainer/rows/line_reader.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

class JsonRows : public RowReader {
 public:
  JsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

  RowFormat format() const override { return RowFormat::kJsonLines; }
  bool Next(RowBlock* block) override;
  bool HasMore() const override { return lines_.HasWholeLine(); }

 private:
  void AddRow(const nlohmann::json& row, std::string_view text, RowBlock* block) const;
  void AddList(const nlohmann::json& list, RowBlock* block) const;
  void AddByName(const nlohmann::json& row, RowBlock* block) const;
  float Value(const nlohmann::json& value, int64_t feature) const;
  std::string Title(int64_t feature) const;
  // The row of this line.
  [[noreturn]] void Refuse(const std::string& text) const;

  const RowSpec spec_;
  bool has_feature_features_ = false;  // one of the model's has this name
  std::string repeated_;               // a name that two of them have
  LineReader lines_;
};

}  // namespace dtrain
