#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

using NamedTensor = std::pair<std::string, Tensor>;

/// An array in NumPy's .npy format (versions 1 to 3, either byte order, C or Fortran order; the result is row-major). NumPy has
/// no bfloat16: "V2", which is what ml_dtypes writes, is read as such. Errors say what in the content is wrong.
Result<Tensor> ParseNpy(std::string_view content);
/// The .npy form of a tensor, version 1, little-endian, C order.
std::string ToNpy(const Tensor& tensor);

/// As ParseNpy; errors name the file.
Result<Tensor> ReadNpy(const std::filesystem::path& path);
/// Whole or not at all.
Status WriteNpy(const std::filesystem::path& path, const Tensor& tensor);

/// The arrays of an .npz archive (numpy.savez or savez_compressed) in the order of the archive; names without ".npy".
Result<std::vector<NamedTensor>> ReadNpz(const std::filesystem::path& path);
/// An .npz archive as numpy.savez writes it, whole or not at all.
Status WriteNpz(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

}  // namespace collage
