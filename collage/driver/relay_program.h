#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "collage/onnx/reader.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Whether a file holds a program in Relay's text: it is named NAME.relay, or it begins as one does, with "fn", "def" or the version of
/// Relay's text files.
bool IsRelayProgram(const std::filesystem::path& path, std::string_view content);

/// The archive that has a program's constants: `given`, or NAME.npz beside the program where that is there; else empty.
std::filesystem::path ConstantsBeside(const std::filesystem::path& program, const std::filesystem::path& given);

/// The values of meta[relay.Constant][i] by i, from an .npz archive whose arrays are named by these numbers. Errors name the file.
Result<std::map<size_t, Tensor>> ReadNumberedConstants(const std::filesystem::path& archive);

/// Reads a program (ir/parse.h) as the model that it is: inputs are the parameters of @main, under their names, outputs the tensors of its
/// result, "output" or "output0", "output1" and so on. Constants are those of ConstantsBeside. Errors name the file and the place in it:
/// what the parser and Verify find, a constant that is not in the archive or has another type than the text says, an array that no constant
/// is.
Result<OnnxModel> ReadRelayProgram(const std::filesystem::path& path, const std::filesystem::path& constants = {});

}  // namespace collage
