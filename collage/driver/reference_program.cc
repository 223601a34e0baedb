#include "collage/driver/reference_program.h"

#include "collage/driver/model_checks.h"
#include "collage/driver/model_file.h"
#include "collage/op/interpreter.h"
#include "collage/support/memory.h"

namespace collage {

Result<std::vector<Tensor>> ReferenceProgram::Run(const std::vector<Tensor>& tensors) const {
  std::vector<Tensor> values = COLLAGE_TRY(InterpretMain(module, tensors));
  if (remainder == nullptr) return values;
  return remainder->Run(values);
}

Result<ReferenceProgram> ReadReferenceProgram(const std::filesystem::path& model, const std::map<std::string, Shape>& input_shapes,
                                              const std::filesystem::path& constants) {
  ReadOptions options;
  options.input_shapes = input_shapes;
  options.may_cut = true;
  OnnxModel read = COLLAGE_TRY(COLLAGE_TRY(ModelFile::Open(model, constants)).Read(options));
  if (Status fits = CheckMemory(read.module, FreeMemory()); !fits) return Fail(fits.error().At(model.string()));
  ReferenceProgram program;
  const Function& main = read.module.Main();
  for (size_t i = 0; i < main.parameters.size(); ++i)
    program.inputs.push_back({read.input_names[i], *main.parameters[i]->type().AsTensor()});
  const std::vector<TensorType> results = FlattenTensors(main.result_type);
  for (size_t i = 0; i < results.size(); ++i) program.outputs.push_back({read.output_names[i], results[i]});
  program.module = std::move(read.module);
  program.remainder = std::move(read.remainder);
  return program;
}

}  // namespace collage
