#include "collage/ir/virtual_device.h"

#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"

namespace collage {
namespace {

VirtualDevice Device(const std::string& text) {
  const Result<VirtualDevice> device = VirtualDevice::Parse(text);
  EXPECT_TRUE(device) << text;
  return device.value_or(VirtualDevice());
}

std::string Joined(const std::string& a, const std::string& b) {
  const JoinedDevice joined = Join(Device(a), Device(b));
  return joined.conflict ? "conflict: " + std::string(Name(*joined.conflict)) : joined.device.ToString();
}
std::string Defaulted(const std::string& a, const std::string& b) { return Default(Device(a), Device(b)).ToString(); }

TEST(VirtualDevice, TextRoundTrips) {
  for (const char* text : {"?", "cpu", "cuda:3", ":1", "@texture", ":0@l2", "cuda:3@global.texture", "cpu -compiler=dnnl",
                           "cuda:1@local -compiler=cudnn -libs=a,b"}) {
    EXPECT_EQ(Device(text).ToString(), text);
  }
}

TEST(VirtualDevice, MalformedTextIsAnError) {
  for (const char* text : {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cpu@", "cpu:0 ", ":0 -compiler=a", "? -compiler=a", "?:0", "cpu:0@a b",
                           "cpu -compiler", "cpu -speed=3", "cpu -compiler=a -compiler=b", "cpu:99999999999999999999"}) {
    EXPECT_FALSE(VirtualDevice::Parse(text)) << text;
  }
}

TEST(VirtualDevice, JoinIsFieldWise) {
  EXPECT_EQ(Joined("cuda@global", "cuda:3@local -libs=m"), "conflict: memory_scope");
  EXPECT_EQ(Joined("cuda:3", "cuda@global"), "cuda:3@global");
  EXPECT_EQ(Joined("cpu", "cuda:0@local"), "conflict: device_type");
  EXPECT_EQ(Joined("cuda:1", "cuda:0 -libs=m"), "conflict: virtual_device_id");
  EXPECT_EQ(Joined("cpu -compiler=a", "cpu -compiler=b"), "conflict: target");
  EXPECT_EQ(Joined("?", "cpu:1@l2 -compiler=a"), "cpu:1@l2 -compiler=a");
  EXPECT_EQ(Joined("cpu@a -compiler=a", "cpu@b -compiler=b"), "conflict: target");
}

TEST(VirtualDevice, OfTwoTargetsTheRefiningOneStays) {
  EXPECT_EQ(Joined("cpu -libs=m", "cpu -libs=m -compiler=a"), "cpu -libs=m -compiler=a");
  EXPECT_EQ(Joined("cpu -compiler=a -libs=m", "cpu -libs=m"), "cpu -compiler=a -libs=m");
  EXPECT_EQ(Joined("cpu -compiler=a -libs=m", "cpu -libs=m -compiler=a"), "cpu -compiler=a -libs=m");
}

TEST(VirtualDevice, DefaultFillsWhatDoesNotContradict) {
  EXPECT_EQ(Defaulted("cuda@global", "cuda:3@local -libs=m"), "cuda:3@global -libs=m");
  EXPECT_EQ(Defaulted("cuda:3", "cuda@global"), "cuda:3@global");
  EXPECT_EQ(Defaulted("cpu", "cuda:0@local"), "cpu");
  EXPECT_EQ(Defaulted("cuda:1", "cuda:0 -libs=m"), "cuda:1");
  EXPECT_EQ(Defaulted("cpu -compiler=a", "cpu -compiler=b"), "cpu -compiler=a");
  EXPECT_EQ(Defaulted("?", "cuda:0@local -libs=m"), "cuda:0@local -libs=m");
}

TEST(VirtualDevice, JoinIsCommutativeAndAssociativeInWhatIsKnown) {
  const std::vector<std::string> all = {"?",          "cpu", "cuda", ":0", ":1", "cpu:1", "@a", "@b", "cpu -compiler=a", "cpu -compiler=b",
                                        "cpu -libs=m"};
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      const JoinedDevice one = Join(Device(a), Device(b));
      const JoinedDevice two = Join(Device(b), Device(a));
      EXPECT_EQ(one.conflict, two.conflict) << a << " " << b;
      if (!one.conflict) {
        EXPECT_EQ(one.device, two.device) << a << " " << b;
      }
    }
    EXPECT_EQ(Joined(a, a), a);
  }
}

std::string Through(const std::string& devices, const std::string& type) {
  const Type parsed = *ParseTypeText(type);
  const Result<std::vector<VirtualDevice>> read = ParseDevices(devices, parsed);
  return read ? ToString(*read, parsed) : "error";
}

TEST(VirtualDevice, DevicesAreWrittenLikeTheirType) {
  EXPECT_EQ(Through("(cpu:0, cuda:0)", "(float32, float32)"), "(cpu:0, cuda:0)");
  EXPECT_EQ(Through("(cpu:0,cpu:0)", "(float32, float32)"), "cpu:0");
  EXPECT_EQ(Through("((cpu, cpu), cuda)", "((float32, float32), float32)"), "(cpu, cuda)");
  EXPECT_EQ(Through("fn (cpu:0) -> cuda:0", "fn (float32) -> float32"), "fn (cpu:0) -> cuda:0");
  EXPECT_EQ(Through("cpu:0", "fn (float32) -> (float32, float32)"), "cpu:0");
  EXPECT_EQ(Through("(cpu -libs=a,b, cuda)", "(float32, float32)"), "(cpu -libs=a,b, cuda)");
  EXPECT_EQ(Through("()", "()"), "()");
  for (const char* wrong : {"(cpu:0)", "(cpu:0, cpu:0, cpu:0)", "(cpu:0, cpu:0", "fn (cpu:0) -> cpu:0", "cpu:0, cpu:0", "(cpu:0, x)"}) {
    EXPECT_EQ(Through(wrong, "(float32, float32)"), "error") << wrong;
  }
}

TEST(VirtualDevice, ParametersAndResultsAreAnnotatedInText) {
  const std::string text =
      "def @main(%x {virtual_device=\"(cpu:0, cuda:0)\"}: (Tensor[(2,), float32], Tensor[(2,), float32]), virtual_device=\"cuda:0\") -> "
      "Tensor[(2,), float32] {\n  %x.1\n}\n";
  const Result<ParsedModule> parsed = ParseModule(text, OpTable());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(Print(parsed->module), text);
  const Result<ParsedModule> other =
      ParseModule("def @main(%x: (Tensor[(2), float32], Tensor[(2), float32]), virtual_device=\"cuda:0\") {\n  %x.1\n}", OpTable());
  EXPECT_FALSE(StructuralEqual(parsed->module, other->module));
  EXPECT_NE(StructuralHash(parsed->module), StructuralHash(other->module));
}

TEST(VirtualDevice, WhatIsMalformedIsALocatedError) {
  const auto error = [](const std::string& text) {
    const Result<ParsedModule> parsed = ParseModule(text, OpTable());
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_TRUE(error("fn (%x {virtual_device=\"gpu\"}: float32) { %x }").starts_with("1:24: virtual device 'gpu'"))
      << error("fn (%x {virtual_device=\"gpu\"}: float32) { %x }");
  EXPECT_TRUE(error("fn (%x {virtual_device=\"(cpu, cpu)\"}: float32) { %x }").starts_with("1:24: "));
  EXPECT_TRUE(error("fn (%x {colour=\"red\"}: float32) { %x }").starts_with("1:9: "));
  EXPECT_TRUE(error("fn (%x {virtual_device=3}: float32) { %x }").starts_with("1:24: "));
  EXPECT_TRUE(error("fn (%x: float32, virtual_device=\"(cpu, cpu)\") { %x }").starts_with("1:1: "));
}

}  // namespace
}  // namespace collage
