#include "collage/op/documentation.h"

#include <gtest/gtest.h>

#include "collage/op/table.h"
#include "collage/support/file.h"

namespace collage {
namespace {

TEST(DocumentationTest, TheCommittedPageIsCurrent) {
  const Result<std::string> page = ReadFile("docs/ops.md");
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_EQ(*page, Documentation(Operators())) << "run: generate_ops_doc > docs/ops.md";
}

}  // namespace
}  // namespace collage
