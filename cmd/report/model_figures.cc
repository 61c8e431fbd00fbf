#include "cmd/report/model_figures.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "cmd/models/checkpoint_model.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/device/choice.h"
#include "trainer/input/sources.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// What a report reads and computes of a model must be no work to wait for.
constexpr int64_t kMaxBytes = 256 << 20;
constexpr int64_t kMaxRows = 200000;  // of data that are made
constexpr double kMaxSeconds = 10;
constexpr int64_t kMaxPictures = 32;
constexpr int64_t kMaxWeights = 20;
constexpr int64_t kMinSide = 8, kMaxSide = 128;  // of a picture, in pixels

// Thrown when an evaluation takes too long.
struct TooLong {};

// The newest one that can be read.
std::string FindNewest(const RunFiles& run) {
  const CheckpointDirectory directory(CheckpointsOf(run.path));
  const std::vector<ListedCheckpoint> listed = directory.List();
  return listed.empty() ? "" : directory.PathOf(listed.front().name);
}

void AddPlacement(const CheckpointReader& reader, const Config& config, ModelFigures* figures) {
  const Layout layout = MakeLayout(config, static_cast<int>(reader.manifest().shards.size()));
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    ModelFigures::Place& place = figures->placement.emplace_back();
    place.values = layout.ps[ps].size();
    if (layout.table) {
      const RowRange rows = layout.table->PartOf(static_cast<int64_t>(ps));
      place.parts.push_back(fmt::format("{} [{}:{})", kTableName, rows.begin, rows.end));
    }
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
      place.parts.push_back(layout.RowsText(segment));
    }
  }
}

bool HasPixels(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  return train.format == DataFormat::kIdx ||
         (train.format == DataFormat::kSynthetic && train.name == SyntheticName::kDigits);
}

// Column i of the first weights is what output, or hidden unit, i makes of each pixel.
void AddPictures(CheckpointReader* reader, const Config& config, ModelFigures* figures) {
  for (const StoredTensor& tensor : reader->manifest().tensors) {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(tensor.rows))));
    if (tensor.name != "weights/W1" || side * side != tensor.rows || side < kMinSide || side > kMaxSide)
      continue;
    if (!HasPixels(config)) continue;
    std::vector<float> all(static_cast<size_t>(tensor.size())), one(static_cast<size_t>(tensor.rows));
    reader->Read(tensor.name, CheckpointReader::kWeights, 0, tensor.size(), all.data());
    const bool layers = config.model.kind == ModelKind::kMlp;
    figures->pictures_of = layers ? "hidden unit" : "class";
    for (int64_t column = 0; column < std::min(tensor.cols, kMaxPictures); ++column) {
      for (size_t pixel = 0; pixel < one.size(); ++pixel) {
        one[pixel] = all[pixel * static_cast<size_t>(tensor.cols) + static_cast<size_t>(column)];
      }
      figures->pictures.push_back({fmt::format("{} {}", figures->pictures_of, column),
                                   PictureUri(one, static_cast<int>(side), static_cast<int>(side))});
    }
    if (tensor.cols > kMaxPictures) {
      figures->notes.push_back(
          fmt::format("{} of the {} pictures of weights are shown.", kMaxPictures, tensor.cols));
    }
  }
}

void AddWeights(CheckpointReader* reader, const Config& config, ModelFigures* figures) {
  if (TakesPixels(config)) return;  // they are pictures
  if (HasTexts(config)) {
    figures->notes.push_back(
        fmt::format("The weights are of hashed features: `dtrain inspect RUN --weights {}` shows the largest "
                    "ones with the "
                    "texts of the rows.",
                    kMaxWeights));
    return;
  }
  if (!reader->manifest().inputs) return;  // of an older dtrain: names are in the rows
  const InputForm form = FormFor(*reader, config);
  const LargestWeights found =
      FindLargestWeights(config, LayoutFor(*reader, config), form, reader, kMaxWeights);
  std::vector<std::string> names;
  for (const LargeWeight& each : found.weights) names.push_back(FeatureName(config, form, each.feature));
  figures->weights = TableOf(config, form, found, names);
}

// Why the set is not evaluated here; empty: it is. A config may come from anybody: what is no
// regular file is not opened.
std::string WhyNotEvaluated(const CheckpointReader& reader, const Config& config) {
  const bool held_out = config.eval.on == EvalOn::kValidation;
  const DataSourceConfig& source = held_out ? config.data.train : config.data.test;
  if (source.format == DataFormat::kNone) return "the run has no data.test";
  if (source.format == DataFormat::kSynthetic) {
    return source.rows.value_or(kMaxRows + 1) > kMaxRows ? "its data are many rows" : "";
  }
  if (!reader.manifest().inputs && source.format == DataFormat::kCsv)
    return "the checkpoint is of an older dtrain";
  std::vector<std::string> paths = source.format == DataFormat::kIdx ? source.images : source.path;
  paths.insert(paths.end(), source.labels.begin(), source.labels.end());
  int64_t bytes = 0;
  for (const std::string& path : paths) {
    if (path == kNotTaken) return "its data came through a pipe";
    for (const std::string& file : SourceFiles({path}, "data")) {
      std::error_code failed;
      if (!fs::is_regular_file(file, failed)) return fmt::format("{} is not here, or no regular file", file);
      bytes += static_cast<int64_t>(fs::file_size(file, failed));
    }
  }
  return bytes > kMaxBytes ? fmt::format("its data are more than {} MiB", kMaxBytes >> 20) : "";
}

void Evaluate(CheckpointReader* reader, const Config& config, ModelFigures* figures) {
  std::string why = WhyNotEvaluated(*reader, config);
  if (why.empty()) {
    const TimePoint begun = Clock::now();
    try {
      figures->evaluation.emplace(EvaluateCheckpoint(config, DeviceChoice(), reader, [begun] {
        if (SecondsSince(begun) > kMaxSeconds) throw TooLong();
      }));
      return;
    } catch (const TooLong&) {
      why = fmt::format("it takes more than {} s", kMaxSeconds);
    }
  }
  figures->notes.push_back(
      fmt::format("The model was not evaluated for this page: {}. `dtrain eval` does it.", why));
}

// Calls `look`; what it cannot do is a note.
template <typename Look>
void Try(const char* what, ModelFigures* figures, const Look& look) {
  try {
    look();
  } catch (const Failure& failure) {
    figures->notes.push_back(fmt::format("{}: {}", what, failure.what()));
  }
}

void LookInside(const std::string& path, ModelFigures* figures) {
  CheckpointReader reader(path);
  figures->checkpoint = path;
  figures->step = reader.manifest().step;
  Config config = ConfigFor(reader, ConfigArguments());
  config.device = DeviceConfig();
  if (config.data.test.format != DataFormat::kNone) config.eval.on = EvalOn::kTest;
  Try("The placement is not known", figures, [&] { AddPlacement(reader, config, figures); });
  if (reader.manifest().bytes() > kMaxBytes) {
    figures->notes.push_back(
        fmt::format("The model is more than {} MiB: it was not looked at for this page.", kMaxBytes >> 20));
    return;
  }
  Try("The weights cannot be shown", figures, [&] { AddPictures(&reader, config, figures); });
  Try("The largest weights cannot be shown", figures, [&] { AddWeights(&reader, config, figures); });
  Try("The model was not evaluated for this page", figures, [&] { Evaluate(&reader, config, figures); });
}

void AppendBigEndian(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift & 0xff));
}

const Bytef* BytesOf(const std::string& text) { return reinterpret_cast<const Bytef*>(text.data()); }

void AppendChunk(const char* type, const std::string& data, std::string* png) {
  const std::string checked = type + data;
  AppendBigEndian(static_cast<uint32_t>(data.size()), png);
  *png += checked;
  AppendBigEndian(static_cast<uint32_t>(crc32(0, BytesOf(checked), static_cast<uInt>(checked.size()))), png);
}

std::string Deflated(const std::string& data) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, BytesOf(data), static_cast<uLong>(data.size()));
  packed.resize(size);
  return packed;
}

std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = i; j < i + 3; ++j) {
      three = three << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0u);
    }
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[three >> shift & 63];
  }
  const size_t missing = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - missing, missing, missing, '=');
}

}  // namespace

ModelFigures LookAtModel(const RunFiles& run) {
  ModelFigures figures;
  Try("The checkpoint cannot be read", &figures, [&] {
    const std::string path = FindNewest(run);
    if (!path.empty()) return LookInside(path, &figures);
    figures.notes.push_back(
        "There is no checkpoint here: this page has no placement, no evaluation and no weights.");
  });
  return figures;
}

std::string PictureUri(const std::vector<float>& weights, int width, int height) {
  float largest = 0;
  for (const float weight : weights) {
    if (std::isfinite(weight)) largest = std::max(largest, std::abs(weight));
  }
  std::string pixels;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i % static_cast<size_t>(width) == 0) pixels.push_back(0);  // the line is not filtered
    const float share = std::isfinite(weights[i]) && largest > 0 ? weights[i] / largest : 0;
    const char* const colour = share > 0 ? "\x2a\x78\xd6" : "\xc8\x32\x2f";
    pixels.append(colour, 3);
    pixels.push_back(static_cast<char>(static_cast<unsigned char>(std::lround(255 * std::abs(share)))));
  }
  std::string png = "\x89PNG\r\n\x1a\n", head;
  AppendBigEndian(static_cast<uint32_t>(width), &head);
  AppendBigEndian(static_cast<uint32_t>(height), &head);
  head += std::string("\x08\x06\x00\x00\x00", 5);  // 8 bits each of red, green, blue and alpha
  AppendChunk("IHDR", head, &png);
  AppendChunk("IDAT", Deflated(pixels), &png);
  AppendChunk("IEND", "", &png);
  return "data:image/png;base64," + Base64(png);
}

}  // namespace dtrain
