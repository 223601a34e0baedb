#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/runtime/program.h"
#include "collage/tensor/slice_offset.h"
#include "tests/runtime/fake_kernel.h"

namespace collage {

inline TensorType IntType(Shape shape) { return {std::move(shape), DType::kInt32}; }

inline Tensor RandomTensor(const TensorType& type, std::mt19937& random) {
  Tensor tensor(type);
  for (int64_t i = 0; i < type.ElementCount(); ++i) tensor.MutableData<uint32_t>()[i] = static_cast<uint32_t>(random());
  return tensor;
}

inline std::vector<uint32_t> Elements(const Tensor& tensor) {
  return {tensor.Data<uint32_t>(), tensor.Data<uint32_t>() + tensor.ElementCount()};
}

/// A program of fake kernels, together with what is needed to evaluate it directly.
struct TestProgram {
  Program program;
  struct Call {
    uint32_t salt;
    std::optional<size_t> accumulated;
    std::vector<size_t> inputs;
    std::vector<size_t> outputs;
  };
  std::vector<Call> calls;

  size_t AddValue(const TensorType& type) {
    program.values.push_back({type});
    return program.values.size() - 1;
  }
  size_t AddInput(const TensorType& type) {
    const size_t value = AddValue(type);
    program.inputs.push_back({"input" + std::to_string(program.inputs.size()), value});
    return value;
  }
  size_t AddConstant(Tensor tensor) {
    const size_t value = AddValue(tensor.type());
    program.values[value].constant = std::move(tensor);
    return value;
  }
  size_t AddView(size_t of, const TensorType& type) {
    const size_t value = AddValue(type);
    program.values[value].view_of = of;
    return value;
  }
  /// Nothing where it would not lie together in that layout.
  std::optional<size_t> AddSlice(size_t of, size_t axis, int64_t begin, int64_t extent, const Layout& layout) {
    TensorType type = program.values[of].type;
    if (!LiesAligned(type, layout, axis, begin, extent)) return std::nullopt;
    type.shape[axis] = extent;
    const size_t value = AddValue(type);
    program.values[value].slice = Program::Slice{of, axis, begin, layout};
    return value;
  }
  /// Likewise.
  std::optional<size_t> AddJoin(const std::vector<size_t>& parts, size_t axis, const Layout& layout) {
    TensorType type = program.values[parts[0]].type;
    type.shape[axis] = 0;
    for (const size_t part : parts) type.shape[axis] += program.values[part].type.shape[axis];
    int64_t begin = 0;
    for (const size_t part : parts) {
      const int64_t extent = program.values[part].type.shape[axis];
      if (!LiesAligned(type, layout, axis, begin, extent)) return std::nullopt;
      begin += extent;
    }
    const size_t value = AddValue(type);
    program.values[value].join = Program::Join{parts, axis, layout};
    return value;
  }
  static bool LiesAligned(const TensorType& whole, const Layout& layout, size_t axis, int64_t begin, int64_t extent) {
    const std::optional<size_t> offset = SliceOffset(whole, layout, axis, begin, extent);
    return offset && *offset % 64 == 0;
  }
  void AddOutput(size_t value) { program.outputs.push_back({"output" + std::to_string(program.outputs.size()), value}); }

  std::vector<size_t> AddCall(const std::vector<size_t>& inputs, const std::vector<Layout>& input_layouts, const std::vector<Port>& outputs,
                              std::optional<size_t> accumulated = std::nullopt, size_t workspace = 0) {
    Call call{static_cast<uint32_t>(calls.size()) * 1000 + 17, accumulated, inputs, {}};
    std::vector<Port> ports;
    for (size_t i = 0; i < inputs.size(); ++i) ports.push_back({program.values[inputs[i]].type, input_layouts[i]});
    for (const Port& port : outputs) call.outputs.push_back(AddValue(port.type));
    auto kernel = std::make_unique<FakeKernel>(std::move(ports), outputs, accumulated, workspace, call.salt);
    program.calls.push_back({{"k" + std::to_string(calls.size()), "fake", "", "", {}, {}}, std::move(kernel), inputs, call.outputs});
    calls.push_back(call);
    return call.outputs;
  }

  [[nodiscard]] std::vector<std::vector<uint32_t>> Evaluate(const std::vector<Tensor>& inputs) const {
    std::vector<std::vector<uint32_t>> values(program.values.size());
    for (size_t i = 0; i < inputs.size(); ++i) values[program.inputs[i].value] = Elements(inputs[i]);
    const auto at = [&](size_t value) -> const std::vector<uint32_t>& { return ElementsOf(value, values); };
    for (const Call& call : calls) {
      std::vector<const std::vector<uint32_t>*> arguments;
      for (const size_t input : call.inputs) arguments.push_back(&at(input));
      std::vector<size_t> counts;
      for (const size_t output : call.outputs) counts.push_back(static_cast<size_t>(program.values[output].type.ElementCount()));
      std::vector<std::vector<uint32_t>> results = EvaluateFake(arguments, counts, call.accumulated, call.salt);
      for (size_t i = 0; i < results.size(); ++i) values[call.outputs[i]] = std::move(results[i]);
    }
    std::vector<std::vector<uint32_t>> results;
    for (const Endpoint& output : program.outputs) results.push_back(at(output.value));
    return results;
  }

 private:
  /// Computes what is made of others without a call when somebody first asks.
  const std::vector<uint32_t>& ElementsOf(size_t value, std::vector<std::vector<uint32_t>>& values) const {
    const Program::Value& definition = program.values[value];
    std::vector<uint32_t>& elements = values[value];
    if (!elements.empty()) return elements;
    if (definition.constant.Defined()) elements = Elements(definition.constant);
    if (definition.view_of) elements = ElementsOf(*definition.view_of, values);
    if (definition.slice) {
      const Program::Slice& slice = *definition.slice;
      elements.resize(static_cast<size_t>(definition.type.ElementCount()));
      Copy(slice.of, value, slice.axis, slice.begin, ElementsOf(slice.of, values), elements, /*to_whole=*/false);
    }
    if (definition.join) {
      elements.resize(static_cast<size_t>(definition.type.ElementCount()));
      int64_t begin = 0;
      for (const size_t part : definition.join->parts) {
        std::vector<uint32_t> of_part = ElementsOf(part, values);
        Copy(value, part, definition.join->axis, begin, elements, of_part, /*to_whole=*/true);
        begin += program.values[part].type.shape[definition.join->axis];
      }
    }
    return elements;
  }

  /// Between a tensor and the part of it that begins at `begin` along an axis, element by element.
  void Copy(size_t whole, size_t part, size_t axis, int64_t begin, const std::vector<uint32_t>& of_whole, std::vector<uint32_t>& of_part,
            bool to_whole) const {
    const Shape& shape = program.values[part].type.shape;
    const std::vector<int64_t> part_strides = RowMajorStrides(shape);
    const std::vector<int64_t> whole_strides = RowMajorStrides(program.values[whole].type.shape);
    for (int64_t i = 0; i < ElementCount(shape); ++i) {
      int64_t at = begin * whole_strides[axis];
      for (size_t d = 0; d < shape.size(); ++d) at += i / part_strides[d] % shape[d] * whole_strides[d];
      uint32_t& in_whole = const_cast<uint32_t&>(of_whole[static_cast<size_t>(at)]);
      uint32_t& in_part = of_part[static_cast<size_t>(i)];
      (to_whole ? in_whole : in_part) = to_whole ? in_part : in_whole;
    }
  }
};

/// Shapes of 480 elements, so that any value can be viewed as any of them.
inline const std::vector<Shape> kShapes = {{1, 20, 4, 6},  {1, 32, 5, 3}, {2, 16, 5, 3}, {480, 1, 1, 1},
                                           {1, 480, 1, 1}, {24, 20},      {480},         {2, 3, 4, 5, 4}};

inline Layout RandomLayout(const Shape& shape, std::mt19937& random, bool plain) {
  if (plain) return {};
  static const std::vector<std::string> four = {"plain", "acdb", "aBcd16b", "aBcd8b"};
  static const std::vector<std::string> two = {"plain", "ba", "aB16b"};
  if (shape.size() == 4) return Layout::Of(four[random() % four.size()]);
  if (shape.size() == 2) return Layout::Of(two[random() % two.size()]);
  return {};
}

inline void AddRandomCall(TestProgram& test, std::vector<size_t>& available, std::mt19937& random, bool plain) {
  std::vector<size_t> inputs;
  std::vector<Layout> layouts;
  for (size_t i = 1 + random() % 3; i > 0; --i) {
    // Mostly recent values, so that many die early and others live long.
    const size_t recent = available.size() - 1 - std::min<size_t>(random() % 4, available.size() - 1);
    inputs.push_back(random() % 5 == 0 ? available[random() % available.size()] : available[recent]);
    layouts.push_back(RandomLayout(test.program.values[inputs.back()].type.shape, random, plain));
  }
  std::vector<Port> outputs;
  std::optional<size_t> accumulated;
  if (random() % 3 == 0) {
    accumulated = random() % inputs.size();
    outputs.push_back({test.program.values[inputs[*accumulated]].type, layouts[*accumulated]});
  }
  while (outputs.empty() || random() % 5 == 0) {
    const Shape& shape = kShapes[random() % kShapes.size()];
    outputs.push_back({IntType(shape), RandomLayout(shape, random, plain)});
  }
  for (const size_t value : test.AddCall(inputs, layouts, outputs, accumulated, random() % 2000)) available.push_back(value);
}

/// Parts of a value, or values one after another; often nothing, because many do not fit.
inline std::vector<size_t> AddRandomParts(TestProgram& test, const std::vector<size_t>& available, std::mt19937& random, bool plain) {
  const auto shape_of = [&](size_t value) -> const Shape& { return test.program.values[value].type.shape; };
  const auto pick = [&] { return available[available.size() - 1 - random() % std::min<size_t>(available.size(), 8)]; };
  const size_t first = pick();
  const size_t axis = random() % shape_of(first).size();
  const Layout layout = RandomLayout(shape_of(first), random, plain);
  std::vector<size_t> made;
  if (random() % 2 == 0) {
    constexpr int64_t kStep = 4;  // makes many offsets that are aligned
    const int64_t whole = shape_of(first)[axis];
    for (int64_t begin = 0; begin < whole;) {
      const int64_t extent = std::min<int64_t>(whole - begin, kStep * static_cast<int64_t>(1 + random() % 6));
      if (const auto slice = test.AddSlice(first, axis, begin, extent, layout)) made.push_back(*slice);
      begin += extent;
    }
    return made;
  }
  std::vector<size_t> parts = {first};
  for (size_t i = random() % 12; i > 0; --i) {
    const size_t part = pick();
    Shape expected = shape_of(first);
    if (shape_of(part).size() != expected.size()) continue;
    expected[axis] = shape_of(part)[axis];
    if (shape_of(part) == expected) parts.push_back(part);
  }
  if (const auto join = test.AddJoin(parts, axis, layout)) made.push_back(*join);
  return made;
}

/// With `plain`, every tensor is in row-major order.
inline TestProgram RandomProgram(unsigned seed, bool plain = false) {
  std::mt19937 random(seed);
  TestProgram test;
  std::vector<size_t> available;
  const auto random_type = [&] { return IntType(kShapes[random() % kShapes.size()]); };
  for (size_t i = 1 + random() % 3; i > 0; --i) available.push_back(test.AddInput(random_type()));
  for (size_t i = 1 + random() % 25; i > 0; --i) {
    switch (random() % 9) {
      case 0:
        available.push_back(test.AddConstant(RandomTensor(random_type(), random)));
        break;
      case 1: {
        const size_t of = available[random() % available.size()];
        const Shape flat = {test.program.values[of].type.ElementCount()};
        available.push_back(test.AddView(of, flat[0] == 480 ? random_type() : IntType(flat)));
        break;
      }
      case 2:
      case 3:
        for (const size_t value : AddRandomParts(test, available, random, plain)) available.push_back(value);
        break;
      default:
        AddRandomCall(test, available, random, plain);
    }
  }
  test.AddOutput(available.back());
  while (random() % 2 == 0) test.AddOutput(available[random() % available.size()]);
  return test;
}

inline std::vector<Tensor> RandomInputs(const TestProgram& test, std::mt19937& random) {
  std::vector<Tensor> inputs;
  for (const Endpoint& input : test.program.inputs) inputs.push_back(RandomTensor(test.program.values[input.value].type, random));
  return inputs;
}

/// Runs the executable of a program on new inputs, once of these with profiling, and expects what direct evaluation gives.
inline void ExpectWhatEvaluationGives(Executable& executable, const TestProgram& same, std::mt19937& random) {
  constexpr int kRuns = 4;
  for (int run = 0; run < kRuns; ++run) {
    executable.SetProfiling(run == 2);
    const std::vector<Tensor> inputs = RandomInputs(same, random);
    const std::vector<std::vector<uint32_t>> expected = same.Evaluate(inputs);
    const Result<std::vector<Tensor>> outputs = executable.Run(inputs);
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (size_t i = 0; i < outputs->size(); ++i) ASSERT_EQ(Elements((*outputs)[i]), expected[i]) << "output " << i << " run " << run;
  }
}

}  // namespace collage
