#include "collage/query/form_json.h"

#include <algorithm>
#include <set>

#include "collage/op/table.h"
#include "collage/pattern/attribute_defaults.h"
#include "collage/pattern/check.h"
#include "collage/query/conditions_json.h"
#include "collage/query/constants.h"
#include "collage/query/pattern_json.h"

namespace collage {
namespace {

/// What builds a part of a replacement from a match.
using Builder = std::function<Result<Expr>(const Match&)>;
/// What says one attribute of a call.
using AttributeSource = std::function<Result<AttributeValue>(const Match&)>;

Result<Expr> Captured(const Match& match, const std::string& name) {
  const Expr found = match.Find(name);
  return found ? Result<Expr>(found) : Fail("nothing is matched as \"" + name + "\" here");
}

class ReplacementReader {
 public:
  explicit ReplacementReader(const Pattern& pattern) : names_(CapturedNames(pattern)) {}

  Result<Builder> Read(const JsonReader& reader) {
    if (depth_ >= kDeepestPattern) return reader.Wrong("the replacement is nested more than " + std::to_string(kDeepestPattern) + " deep");
    ++depth_;
    Result<Builder> read = OfAnyKind(reader);
    --depth_;
    return read;
  }

 private:
  Result<Builder> OfAnyKind(const JsonReader& reader) {
    if (reader.IsString()) {
      return Builder([name = COLLAGE_TRY(NameIn(reader))](const Match& match) { return Captured(match, name); });
    }
    if (reader.Has("call")) return Called(reader);
    if (reader.Has("constant")) return ConstantOf(reader);
    if (reader.Has("tuple")) return TupleOf(reader);
    if (reader.Has("projection")) return ProjectionOf(reader);
    return reader.Expected("a name of the pattern, or an object with \"call\", \"constant\", \"tuple\" or \"projection\"");
  }

  Result<std::string> NameIn(const JsonReader& reader) const {
    std::string name = COLLAGE_TRY(reader.String());
    if (!names_.contains(name)) return reader.Wrong("no part of the pattern is named \"" + name + "\" by \"as\"");
    return name;
  }

  Result<std::vector<Builder>> All(const JsonReader& list) {
    std::vector<Builder> builders;
    for (const JsonReader& item : COLLAGE_TRY(list.Items())) builders.push_back(COLLAGE_TRY(Read(item)));
    return builders;
  }

  static Result<std::vector<Expr>> Built(const std::vector<Builder>& builders, const Match& match) {
    std::vector<Expr> built;
    for (const Builder& builder : builders) built.push_back(COLLAGE_TRY(builder(match)));
    return built;
  }

  Result<Builder> Called(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"call", "args", "attributes", "attributes_of"}));
    const JsonReader name = COLLAGE_TRY(reader.At("call"));
    const OpDef* op = Operators().Find(COLLAGE_TRY(name.String()));
    if (!op) return name.Wrong("there is no operator \"" + *name.String() + "\"");
    std::string base;
    if (reader.Has("attributes_of")) base = COLLAGE_TRY(NameIn(COLLAGE_TRY(reader.At("attributes_of"))));
    std::vector<std::pair<std::string, AttributeSource>> sources;
    if (reader.Has("attributes")) {
      for (const auto& [attribute, value] : COLLAGE_TRY(COLLAGE_TRY(reader.At("attributes")).Fields()))
        sources.emplace_back(attribute, COLLAGE_TRY(SourceOf(value)));
    }
    return Builder([op, base, sources, arguments = COLLAGE_TRY(All(COLLAGE_TRY(reader.At("args"))))](const Match& match) -> Result<Expr> {
      Attributes attributes;
      if (!base.empty()) {
        const Call* call = COLLAGE_TRY(Captured(match, base))->As<Call>();
        if (!call) return Fail("\"" + base + "\" is no call here, so it has no attributes");
        attributes = call->attributes;
      }
      for (const auto& [name, source] : sources) attributes.Set(name, COLLAGE_TRY(source(match)));
      return MakeCall(op, COLLAGE_TRY(Built(arguments, match)), std::move(attributes));
    });
  }

  /// A value as it stands, or an object: an attribute of what is matched, or the extents of its tensor.
  Result<AttributeSource> SourceOf(const JsonReader& reader) const {
    if (reader.Has("shape_of")) {
      COLLAGE_TRY_STATUS(reader.OnlyFields({"shape_of"}));
      return AttributeSource(
          [name = COLLAGE_TRY(NameIn(COLLAGE_TRY(reader.At("shape_of"))))](const Match& match) -> Result<AttributeValue> {
            const Expr found = COLLAGE_TRY(Captured(match, name));
            const TensorType* type = found->type().AsTensor();
            if (!type) return Fail("\"" + name + "\" is no tensor here, so it has no shape");
            return AttributeValue(std::vector<int64_t>(type->shape));
          });
    }
    if (reader.IsObject()) {
      COLLAGE_TRY_STATUS(reader.OnlyFields({"attribute", "of"}));
      const std::string attribute = COLLAGE_TRY(COLLAGE_TRY(reader.At("attribute")).String());
      return AttributeSource(
          [attribute, of = COLLAGE_TRY(NameIn(COLLAGE_TRY(reader.At("of"))))](const Match& match) -> Result<AttributeValue> {
            return AttributeOrDefault(COLLAGE_TRY(Captured(match, of)), attribute);
          });
    }
    return AttributeSource([value = COLLAGE_TRY(AttributeValueFrom(reader))](const Match&) -> Result<AttributeValue> { return value; });
  }

  static Result<Builder> ConstantOf(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"constant"}));
    const Expr constant = MakeConstant(COLLAGE_TRY(ReadTensor(COLLAGE_TRY(reader.At("constant")))));
    return Builder([constant](const Match&) -> Result<Expr> { return constant; });
  }

  Result<Builder> TupleOf(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"tuple"}));
    return Builder([fields = COLLAGE_TRY(All(COLLAGE_TRY(reader.At("tuple"))))](const Match& match) -> Result<Expr> {
      return MakeTuple(COLLAGE_TRY(Built(fields, match)));
    });
  }

  Result<Builder> ProjectionOf(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"projection", "index"}));
    const size_t index = COLLAGE_TRY(COLLAGE_TRY(reader.At("index")).Count());
    return Builder([index, tuple = COLLAGE_TRY(Read(COLLAGE_TRY(reader.At("projection"))))](const Match& match) -> Result<Expr> {
      return MakeTupleGetItem(COLLAGE_TRY(tuple(match)), index);
    });
  }

  const std::set<std::string> names_;
  size_t depth_ = 0;
};

Result<FormRule> FormFrom(const JsonReader& reader) {
  if (!reader.IsObject()) return reader.Expected("an object with name, pattern and replacement");
  COLLAGE_TRY_STATUS(reader.OnlyFields({"name", "pattern", "check", "replacement"}));
  const JsonReader name = COLLAGE_TRY(reader.At("name"));
  const Pattern pattern = COLLAGE_TRY(PatternFrom(COLLAGE_TRY(reader.At("pattern"))));
  MatchCheck check = COLLAGE_TRY(OptionalCheck(reader));
  if (!check) check = [](const Match&) { return Verdict::Accept(); };
  const auto replace = [builder = COLLAGE_TRY(ReplacementReader(pattern).Read(COLLAGE_TRY(reader.At("replacement"))))](
                           const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    return std::vector<Expr>{COLLAGE_TRY(builder(matches.front()))};
  };
  return StatedForm(COLLAGE_TRY(name.String()), pattern, std::move(check), replace);
}

}  // namespace

Result<std::vector<FormRule>> StatedFormsFrom(const JsonReader& reader) {
  std::vector<FormRule> forms;
  for (const JsonReader& item : COLLAGE_TRY(reader.Items())) forms.push_back(COLLAGE_TRY(FormFrom(item)));
  const Status named = CheckNamesOfStated(forms);
  return named ? Result<std::vector<FormRule>>(std::move(forms)) : reader.Wrong(named.error().message);
}

}  // namespace collage
