// ONNX's own backend tests on the reference executor. make_node_tests.py writes them; node_exclusions.txt says which are not run
// and why.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "collage/onnx/writer.h"
#include "collage/op/interpreter.h"
#include "collage/support/file.h"
#include "collage/tensor/strings.h"
#include "tests/onnx/expected.h"

namespace collage {
namespace {

const std::filesystem::path kFolder = COLLAGE_ONNX_NODE_TESTS;

/// Inputs and expected outputs of one run, and how far outputs may be off: absolute + relative * expected.
struct DataSet {
  ReadOptions options;  ///< values of inputs, lengths of sequences
  std::vector<Tensor> outputs;
  double relative = 0;
  double absolute = 0;
};

Result<DataSet> ReadDataSet(const std::filesystem::path& path) {
  const OnnxModel model = COLLAGE_TRY(ReadOnnxFile(path));
  const std::vector<Tensor> tensors = COLLAGE_TRY(InterpretMain(model.module, {}));
  DataSet set;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = model.output_names[i];
    if (name.starts_with("in:")) set.options.input_values.emplace(name.substr(3), tensors[i]);
    if (name.starts_with("length:")) set.options.input_shapes.emplace(name.substr(7), tensors[i].ToInt64());
    if (name.starts_with("absent:")) set.options.absent_inputs.insert(name.substr(7));
    if (name.starts_with("out:")) set.outputs.push_back(tensors[i]);
    if (name != "tolerance") continue;
    set.relative = tensors[i].Values<double>()[0];
    set.absolute = tensors[i].Values<double>()[1];
  }
  return set;
}

bool Close(double found, double expected, const DataSet& set) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return true;
  return std::abs(found - expected) <= set.absolute + set.relative * std::abs(expected) && std::isfinite(expected);
}

/// Empty when they agree.
std::string Difference(const Tensor& found, const Tensor& expected, const DataSet& set) {
  if (found.type() != expected.type()) return "has type " + ToString(found.type()) + ", not " + ToString(expected.type());
  if (found.dtype() == DType::kString) {
    const std::vector<std::string> texts = StringsOf(found);
    const std::vector<std::string> wanted = StringsOf(expected);
    const auto [at, other] = std::mismatch(texts.begin(), texts.end(), wanted.begin());
    return at == texts.end() ? "" : "a string is '" + *at + "', not '" + *other + "'";
  }
  const std::vector<double> left = found.ToDouble();
  const std::vector<double> right = expected.ToDouble();
  for (size_t i = 0; i < left.size(); ++i) {
    if (Close(left[i], right[i], set)) continue;
    return "element " + std::to_string(i) + " of " + ToString(found.type()) + " is " + std::to_string(left[i]) + ", not " +
           std::to_string(right[i]);
  }
  return "";
}

enum class Verdict { kPassed, kPassedWithFixedInputs, kRefused, kWrong, kUnwritable };

struct Outcome {
  Verdict verdict;
  std::string message;
};

bool Passes(const Outcome& outcome) { return outcome.verdict == Verdict::kPassed || outcome.verdict == Verdict::kPassedWithFixedInputs; }

Outcome CompareOutputs(const OnnxModel& model, const DataSet& set) {
  std::vector<Tensor> inputs;
  for (const std::string& name : model.input_names) inputs.push_back(set.options.input_values.at(name));
  const Result<std::vector<Tensor>> outputs = InterpretMain(model.module, inputs);
  if (!outputs) return {Verdict::kRefused, outputs.error().message};
  if (outputs->size() != set.outputs.size()) return {Verdict::kWrong, "has another number of outputs"};
  for (size_t i = 0; i < outputs->size(); ++i) {
    const std::string difference = Difference((*outputs)[i], set.outputs[i], set);
    if (!difference.empty()) return {Verdict::kWrong, "output '" + model.output_names[i] + "': " + difference};
  }
  return {model.fixed_inputs.empty() ? Verdict::kPassed : Verdict::kPassedWithFixedInputs, ""};
}

/// With `rewrite` the model is written so and read again before it runs.
Outcome RunSet(const std::filesystem::path& path, const DataSet& set, const std::optional<WriteOptions>& rewrite) {
  Result<OnnxModel> model = ReadOnnxFile(path, set.options);
  if (!model) return {Verdict::kRefused, model.error().message.substr(path.string().size() + 2)};
  if (rewrite) {
    WriteOptions options = *rewrite;
    options.input_names = model->input_names;
    options.output_names = model->output_names;
    const Result<std::string> bytes = WriteOnnx(model->module.Main(), options);
    if (!bytes) return {Verdict::kUnwritable, bytes.error().message};
    model = ReadOnnx(*bytes, {.input_values = set.options.input_values});  // their shapes fill in what ONNX cannot say: extents of 0
    if (!model) return {Verdict::kRefused, "read again: " + model.error().message};
  }
  return CompareOutputs(*model, set);
}

Outcome RunTest(const std::string& name, const std::optional<WriteOptions>& rewrite = std::nullopt) {
  const std::filesystem::path path = kFolder / (name + ".onnx");
  Outcome outcome{Verdict::kRefused, "it has no data"};
  for (size_t i = 0;; ++i) {
    const std::filesystem::path data = kFolder / (name + "." + std::to_string(i) + ".data");
    if (!std::filesystem::exists(data)) return outcome;
    const Result<DataSet> set = ReadDataSet(data);
    if (!set) return {Verdict::kRefused, "its data: " + set.error().message};
    outcome = RunSet(path, *set, rewrite);
    if (!Passes(outcome)) return outcome;
  }
}

std::vector<std::string> TestNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".onnx") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Lines(const std::filesystem::path& path) {
  const Result<std::string> text = ReadFile(path);
  EXPECT_TRUE(text) << text.error().message;
  std::istringstream stream(text ? *text : "");
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

/// One line each: a regular expression for whole names of tests, a colon, and the reason.
class Exclusions {
 public:
  explicit Exclusions(const std::filesystem::path& path) {
    for (const std::string& line : Lines(path)) {
      const size_t colon = line.find(": ");
      if (colon == std::string::npos) {
        ADD_FAILURE() << "no reason in '" << line << "' of " << path;
        continue;
      }
      rules_.emplace_back(std::regex(line.substr(0, colon)), line.substr(colon + 2));
    }
  }

  /// Null for a test that must pass.
  [[nodiscard]] const std::string* ReasonFor(const std::string& name) const {
    for (const auto& [expression, reason] : rules_) {
      if (std::regex_match(name, expression)) return &reason;
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<std::regex, std::string>> rules_;
};

struct Counts {
  size_t passed = 0;
  size_t fixed = 0;
  size_t refused = 0;
  size_t wrong = 0;
  std::map<std::string, size_t> excluded;

  void Add(Verdict verdict) {
    ++(verdict == Verdict::kPassed                  ? passed
       : verdict == Verdict::kPassedWithFixedInputs ? fixed
       : verdict == Verdict::kRefused               ? refused
                                                    : wrong);
  }
};

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kPassedWithFixedInputs:
      return "fixed";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kWrong:
      return "wrong";
    case Verdict::kUnwritable:
      return "unwritable";
  }
  return "";
}

void Print(const Counts& counts, size_t tests, size_t onnxruntime) {
  std::cout << tests << " tests of the onnx package: the reference executor passes " << counts.passed + counts.fixed << " (" << counts.fixed
            << " of them with inputs fixed that shapes depend on), refuses " << counts.refused << ", is wrong on " << counts.wrong
            << "; ONNX Runtime passes " << onnxruntime << "\n";
  for (const auto& [reason, count] : counts.excluded) std::cout << "  excluded " << count << ": " << reason << "\n";
}

TEST(OnnxNodeTests, GiveWhatOnnxSays) {
  const std::vector<std::string> names = TestNames();
  ASSERT_GT(names.size(), 1000U);
  const Exclusions exclusions(COLLAGE_ONNX_NODE_EXCLUSIONS);
  std::ofstream report(kFolder / "collage.txt");
  Counts counts;
  for (const std::string& name : names) {
    const Outcome outcome = RunTest(name);
    counts.Add(outcome.verdict);
    report << name << "\t" << Name(outcome.verdict) << "\t" << outcome.message << std::endl;
    const bool passes = Passes(outcome);
    const std::string* reason = exclusions.ReasonFor(name);
    if (reason != nullptr) ++counts.excluded[*reason];
    EXPECT_EQ(passes, reason == nullptr) << name << (passes ? ": passes although it is excluded" : ": " + outcome.message);
  }
  Print(counts, names.size(), Lines(kFolder / "onnxruntime.txt").size());
}

/// Operators and element types that are younger than the opset that is written have no form there, nor have strings where they are not
/// asked for; what is written must be right. How many have none.
size_t ExpectTheSameAfterWritingAndReading(const WriteOptions& options) {
  const Exclusions exclusions(COLLAGE_ONNX_NODE_EXCLUSIONS);
  size_t unwritable = 0;
  for (const std::string& name : TestNames()) {
    if (exclusions.ReasonFor(name) != nullptr) continue;
    const Outcome outcome = RunTest(name, options);
    if (outcome.verdict == Verdict::kUnwritable) {
      ++unwritable;
      const bool has_no_form =
          outcome.message.find("no ") != std::string::npos || outcome.message.find("not straight-line") != std::string::npos;
      EXPECT_TRUE(has_no_form) << name << ": " << outcome.message;
      continue;
    }
    EXPECT_TRUE(Passes(outcome)) << name << ": " << outcome.message;
  }
  std::cout << unwritable << " tests have no form in opset " << options.opset << "\n";
  return unwritable;
}

TEST(OnnxNodeTests, GiveTheSameAfterWritingAndReading) { EXPECT_LT(ExpectTheSameAfterWritingAndReading({}), 320U); }

TEST(OnnxNodeTests, GiveTheSameAfterWritingAllThatOnnxCanSayAndReading) {
  EXPECT_LT(ExpectTheSameAfterWritingAndReading({.opset = kOpsetOfStrings, .is_complete = true}), 300U);
}

TEST(OnnxNodeTests, LengthsOfSequencesMustBeKnown) {
  const std::filesystem::path path = kFolder / "node.test_identity_sequence.onnx";
  const Result<OnnxModel> unknown = ReadOnnxFile(path);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("input 'x' is a sequence of unknown length: give it, for example --shape x=2"), std::string::npos)
      << unknown.error().message;
  const Result<OnnxModel> two = ReadOnnxFile(path, {.input_shapes = {{"x[0]", {3}}, {"x[1]", {2, 2}}}});
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->input_names, (std::vector<std::string>{"x[0]", "x[1]"}));
  EXPECT_EQ(two->output_names, (std::vector<std::string>{"y[0]", "y[1]"}));
  EXPECT_FALSE(ReadOnnxFile(path, {.input_shapes = {{"x", {2}}, {"x[0]", {3}}}})) << "the second one has no shape";
  EXPECT_FALSE(ReadOnnxFile(path, {.input_shapes = {{"x", {1}}, {"x[0]", {3}}, {"x[1]", {3}}}})) << "there is no second one";
}

}  // namespace
}  // namespace collage
