#include <map>

#include "collage/ir/structural.h"
#include "collage/query/prices.h"
#include "collage/query/queries.h"
#include "collage/query/sub_graph_json.h"

namespace collage {
namespace {

/// An estimator that knows its prices from the query, and the cache before it: equal functions of one backend are priced once.
class Estimator {
 public:
  Estimator(FixedPrices prices, bool rejects) : prices_(std::move(prices)), rejects_(rejects) {}

  std::optional<double> PriceOf(const std::string& backend, const Expr& function, size_t operators) {
    const auto [at, is_new] = known_.try_emplace({backend, StructuralHash(function, ForPricing())});
    if (is_new) {
      ++calls_;
      if (!rejects_) at->second = prices_.Of(backend, operators);
    }
    return at->second;
  }
  [[nodiscard]] size_t calls() const { return calls_; }

 private:
  FixedPrices prices_;
  bool rejects_;
  size_t calls_ = 0;
  std::map<std::pair<std::string, uint64_t>, std::optional<double>> known_;
};

Json ToJson(const std::optional<double>& price) { return price ? PriceToJson(*price) : Json("invalid"); }

// NOLINTNEXTLINE(bugprone-exception-escape): the library's JSON is moved without exceptions, but not declared so
struct Priced {
  std::optional<double> price;
  Json function;
};

Result<Priced> PriceOne(const QueryProgram& program, const JsonReader& query, const JsonReader& fields, Estimator& estimator,
                        const std::optional<Json>& known_price) {
  if (fields.IsObject() && fields.place() != query.place()) {
    COLLAGE_TRY_STATUS(fields.OnlyFields({"inside", "nested", "attributes", "function"}));
  }
  const JsonReader names = fields.IsList() ? fields : COLLAGE_TRY(fields.At("inside"));
  const NamedFunction& function = *COLLAGE_TRY(program.FunctionOf(fields.Has("function") ? fields : query, names));
  const SubGraph sub_graph = COLLAGE_TRY(SubGraphFrom(function, fields));
  // What cannot be a function at all has no price, whatever limits a rule may set.
  if (!sub_graph.IsValid(function.graph(), {.allow_taps = true})) return Priced{};
  const ExtractedFunction extracted = COLLAGE_TRY(ExtractFunction(function.graph(), sub_graph));
  Priced priced;
  priced.function = function.Tagged(FunctionToJson(function, sub_graph, extracted));
  if (known_price) {
    if (known_price->is_number()) priced.price = known_price->get<double>();
  } else {
    priced.price = estimator.PriceOf(BackendOf(sub_graph), extracted.function, sub_graph.operator_count());
  }
  return priced;
}

}  // namespace

Result<Json> AnswerPrice(const QueryProgram& program, const JsonReader& query) {
  std::vector<std::string_view> allowed = {"price", "price_in_turn", "prices", "known_price", "backend_rejects_everything", "function"};
  // Where "price" is no object, the sub-graph may stand beside it.
  if (query.Has("price") && !query.value()["price"].is_object()) {
    for (const char* field : {"inside", "nested", "attributes"}) allowed.emplace_back(field);
  }
  COLLAGE_TRY_STATUS(query.OnlyFields(allowed));
  const bool rejects = COLLAGE_TRY(query.BoolOr("backend_rejects_everything", false));
  std::optional<Json> known_price;
  if (query.Has("known_price") && !query.value()["known_price"].is_null()) {
    const JsonReader known = COLLAGE_TRY(query.At("known_price"));
    if (!known.IsNumber() && !known.IsText("invalid") && !known.IsText("unknown"))
      return known.Expected("a number, \"invalid\" or \"unknown\"");
    if (!known.IsText("unknown")) known_price = known.value();
  }
  const bool needs_prices = !known_price && !rejects;
  FixedPrices prices;
  if (needs_prices || query.Has("prices")) prices = COLLAGE_TRY(FixedPrices::Read(COLLAGE_TRY(query.At("prices"))));
  Estimator estimator(std::move(prices), rejects);
  if (query.Has("price_in_turn")) {
    Json list = Json::array();
    for (const JsonReader& item : COLLAGE_TRY(COLLAGE_TRY(query.At("price_in_turn")).Items())) {
      list.push_back(ToJson(COLLAGE_TRY(PriceOne(program, query, item, estimator, known_price)).price));
    }
    return Json{{"count", list.size()}, {"prices", std::move(list)}, {"estimator_calls", estimator.calls()}};
  }
  const JsonReader below = COLLAGE_TRY(query.At("price"));
  const Json own_fields = WithWhatStandsBeside(below, query);
  const JsonReader fields = below.IsObject() || below.IsList() ? JsonReader(own_fields, below.place()) : query;
  const Priced priced = COLLAGE_TRY(PriceOne(program, query, fields, estimator, known_price));
  Json answer = {{"price", ToJson(priced.price)}, {"estimator_calls", estimator.calls()}};
  if (!priced.function.is_null()) answer["priced_function"] = priced.function;
  return answer;
}

}  // namespace collage
