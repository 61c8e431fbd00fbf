// SafetensorsFile: https://huggingface.co/docs/safetensors. Owner: OpenTensorFile's caller. Thread: one.
#pragma once

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
    ElementType type = ElementType::kFloat32;
    uint64_t begin = 0;  // byte of the file
    uint64_t bytes = 0;
  };
  void ReadHeader();
  void AddTensors(const std::string& header);
  void CheckOverlaps() const;

  const std::unique_ptr<SourceFile> file_;
  uint64_t data_ = 0;  // where the tensors begin
  std::vector<Place> places_;
};

}  // namespace dtrain
