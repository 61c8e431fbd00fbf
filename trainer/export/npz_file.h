// NpzFile: what numpy.savez and numpy.savez_compressed write. Owner: OpenTensorFile's caller. Thread: one.
#pragma once

#include "trainer/export/element_type.h"
#include "trainer/export/source_file.h"
#include "trainer/export/tensor_file.h"
#include "trainer/export/zip_archive.h"

namespace dtrain {

class NpzFile : public TensorFile {
 public:
  explicit NpzFile(std::unique_ptr<SourceFile> file);
  void Read(size_t index, float* out) override;

 private:
  void AddArray(const std::string& name, const ZipMember& member);

  struct Array {
    ElementType type = ElementType::kFloat32;  // of one that can be read
    std::string unreadable;
    bool by_columns = false;  // Fortran's order
    std::vector<int64_t> shape;
  };
  // The header in front of the values.
  Array ReadHeader(const ZipMember& member, ZipStream* stream) const;

  const std::unique_ptr<SourceFile> file_;
  // Of tensors_.
  std::vector<ZipMember> members_;
  std::vector<Array> arrays_;
};

}  // namespace dtrain
