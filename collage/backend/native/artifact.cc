#include "collage/backend/native/artifact.h"

#include "collage/backend/artifact_bytes.h"

namespace collage::native {
namespace {

using artifact::ArtifactReader;
using artifact::ArtifactWriter;

constexpr std::string_view kMagic = "collage-native-1";

}  // namespace

std::string WriteArtifact(const KernelImage& image, const std::string& processor) {
  ArtifactWriter writer;
  writer.Head(kMagic, processor);
  writer.Ports(image.inputs);
  writer.Ports(image.outputs);
  writer.Tensors(image.constants);
  writer.Text(image.code->object());
  return writer.Take();
}

Result<KernelImage> ReadArtifact(std::string_view artifact, const std::string& processor) {
  ArtifactReader reader(artifact, "native");
  COLLAGE_TRY_STATUS(reader.Head(kMagic, processor));
  KernelImage image;
  image.inputs = COLLAGE_TRY(reader.Ports());
  image.outputs = COLLAGE_TRY(reader.Ports());
  image.constants = COLLAGE_TRY(reader.Tensors());
  std::string object(COLLAGE_TRY(reader.Text()));
  if (!reader.AtEnd()) return reader.Damaged();
  image.code = COLLAGE_TRY(Codes().Link(std::move(object)));
  return image;
}

}  // namespace collage::native
