#include "collage/op/table.h"

#include <gtest/gtest.h>

#include <set>

namespace collage {
namespace {

TEST(TableTest, EveryRecordIsComplete) {
  ASSERT_FALSE(Operators().records().empty());
  for (const auto& op : Operators().records()) {
    SCOPED_TRACE(op->name);
    EXPECT_FALSE(op->summary.empty());
    EXPECT_EQ(op->summary.back(), '.');
    EXPECT_TRUE(op->infer_type);
    EXPECT_TRUE(op->work);
    EXPECT_TRUE(op->reference);
    for (const std::string& name : op->argument_names) EXPECT_FALSE(name.empty());
    EXPECT_EQ(std::set(op->argument_names.begin(), op->argument_names.end()).size(), op->argument_names.size());
    std::set<std::string> attributes;
    for (const AttributeSpec& spec : op->attributes) {
      EXPECT_TRUE(attributes.insert(spec.name).second) << spec.name;
      EXPECT_GT(spec.meaning.size(), 10u) << spec.name;
      EXPECT_TRUE((std::set<std::string>{"int", "float", "bool", "string", "ints", "list"}).contains(spec.form)) << spec.name;
    }
  }
}

}  // namespace
}  // namespace collage
