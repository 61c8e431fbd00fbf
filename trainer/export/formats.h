// The formats that a model is exported to. Each is written to `file`, which the caller finishes, in bounded
// memory but for ONNX. docs/models.md describes what is in them.
#pragma once

#include "trainer/export/exported_model.h"
#include "trainer/export/output_file.h"

namespace dtrain {

// https://huggingface.co/docs/safetensors: 8 bytes with the length of a JSON header, the header, the tensors.
void WriteSafetensors(const ExportedModel& model, OutputFile* file);

// numpy.savez: a zip archive of .npy files, stored and not compressed.
void WriteNpz(const ExportedModel& model, OutputFile* file);

// One message (onnx.proto) from raw inputs to predictions, made in memory. UserError for a model of more than
// 2 GiB, the most that a protobuf message can be.
void WriteOnnx(const ExportedModel& model, OutputFile* file);

}  // namespace dtrain
