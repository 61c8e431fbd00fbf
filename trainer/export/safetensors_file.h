// SafetensorsFile: https://huggingface.co/docs/safetensors. Owner: OpenTensorFile's caller. Thread: one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "trainer/export/element_type.h"
#include "trainer/export/source_file.h"
#include "trainer/export/tensor_file.h"

namespace dtrain {

class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(std::unique_ptr<SourceFile> file);
  void Read(size_t index, float* out) override;

 private:
  struct Place {
    ElementType type = ElementType::kFloat32;  // of one that can be read
    uint64_t begin = 0;                        // byte of the file
    uint64_t bytes = 0;
  };
  void ReadHeader();
  nlohmann::json ParseHeader(const std::string& header) const;
  void AddMetadata(const nlohmann::json& metadata);
  void AddTensors(const nlohmann::json& header);
  void AddTensor(const std::string& name, const nlohmann::json& entry);
  void CheckPlaces() const;

  const std::unique_ptr<SourceFile> file_;
  uint64_t data_ = 0;  // where the tensors begin
  std::vector<Place> places_;
};

}  // namespace dtrain
