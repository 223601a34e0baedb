#include "collage/ir/virtual_device.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

OpDef::TypeRule DevicesRule(std::vector<std::string> names) {
  return [names = std::move(names)](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    for (const std::string& name : names) {
      const Result<std::vector<VirtualDevice>> devices = ParseDevices(StringAttribute(attributes, name, ""), arguments[0]);
      if (!devices) return Fail("attribute '" + name + "': " + devices.error().message);
    }
    return arguments[0];
  };
}

OpDef Identity(std::string name, std::string summary, std::vector<AttributeSpec> attributes, std::vector<std::string> devices) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .attributes = std::move(attributes),
          .is_identity = true,
          .infer_type = DevicesRule(std::move(devices)),
          .work = NoWork,
          .reference = [](std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
            for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = inputs[i];
          }};
}

}  // namespace

void AddDeviceOperators(OpTable& table) {
  Register(table,
           Identity("on_device",
                    "Data of any type, with a statement about where its tensors lie, which device planning takes into account and "
                    "removes.",
                    {{"virtual_device", "string", "\"TYPE:ID@SCOPE -attribute=value\", in the form of the type of data", true},
                     {"constrain_body", "bool", "whether data itself lies there, default True"},
                     {"constrain_result", "bool", "whether whoever uses the result finds it there, default False"}},
                    {"virtual_device"}),
           NarrowTypes::kAsStored);
  Register(
      table,
      Identity("device_copy", "Data of any type, brought from one place to another.",
               {{"src_virtual_device", "string", "where data lies", true}, {"dst_virtual_device", "string", "where the result lies", true}},
               {"src_virtual_device", "dst_virtual_device"}),
      NarrowTypes::kAsStored);
}

}  // namespace collage
