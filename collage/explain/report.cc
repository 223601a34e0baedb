#include "collage/explain/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "collage/explain/plan_names.h"
#include "collage/tensor/extents.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::optional<double> NumberOrNothing(const Json& value) { return value.is_null() ? std::nullopt : std::optional(value.get<double>()); }

Json TieJson(const std::optional<ReportedTie>& tie) {
  return tie ? Json({{"within", tie->within}, {"partitions", tie->partitions}, {"cost_us", tie->cost_us}}) : Json();
}

Json OperatorJson(const OperatorPlacement& placement) {
  Json rejections = Json::array();
  for (const Rejection& rejection : placement.rejections) {
    rejections.push_back({{"backend", rejection.backend}, {"variant", rejection.variant}, {"reason", rejection.reason}});
  }
  Json json = {{"name", placement.name},       {"operator", placement.op},     {"nodes", placement.nodes},
               {"backend", placement.backend}, {"variant", placement.variant}, {"partition", placement.symbol},
               {"cost_us", placement.cost_us}, {"sharers", placement.sharers}, {"runner_up", placement.runner_up}};
  json["runner_up_extra_us"] = OrNull(placement.runner_up_extra_us);
  json["left_out"] = placement.left_out;
  json["pinned"] = placement.pinned;
  if (!placement.device.empty()) json["device"] = placement.device;
  if (!placement.form.empty()) json["form"] = placement.form;
  json["rejections"] = std::move(rejections);
  return json;
}

OperatorPlacement OperatorFrom(const Json& json) {
  OperatorPlacement placement;
  placement.name = json.at("name");
  placement.op = json.at("operator");
  placement.backend = json.at("backend");
  placement.variant = json.at("variant");
  placement.symbol = json.at("partition");
  placement.cost_us = json.at("cost_us");
  placement.sharers = json.at("sharers");
  placement.runner_up = json.at("runner_up");
  placement.runner_up_extra_us = NumberOrNothing(json.at("runner_up_extra_us"));
  placement.left_out = json.value("left_out", false);  // files of before have none of these
  placement.pinned = json.value("pinned", false);
  placement.device = json.value("device", std::string());
  placement.form = json.value("form", std::string());
  placement.nodes = json.value("nodes", std::vector<std::string>());
  for (const Json& rejection : json.at("rejections")) {
    placement.rejections.push_back({rejection.at("backend"), rejection.at("variant"), rejection.at("reason")});
  }
  return placement;
}

std::string SecondsText(const CompileReport& report) {
  if (!report.budget_seconds) return "";
  return fmt::format("  budget: {:.1f} s of {:.1f} s spent\n", report.elapsed_seconds, *report.budget_seconds);
}

std::string HonestTotals(const CompileReport& report) {
  std::string text;
  if (report.additive_error_us)
    text += fmt::format("  additive error (measured less the estimate for the race): {:+.1f} us ({:+.1f}%)\n", *report.additive_error_us,
                        report.estimated_us > 0 ? 100 * *report.additive_error_us / report.estimated_us : 0);
  if (report.apparent_loss)
    text += fmt::format("  apparent loss (searched plan over the best single backend): {:+.2f}%\n", 100 * *report.apparent_loss);
  if (report.decisions_left_out > 0)
    text +=
        fmt::format("  decisions without a margin, the plan around them being too large to search again: {}\n", report.decisions_left_out);
  return text + SecondsText(report);
}

Json CountsJson(const CandidateCounts& counts) {
  const Json variants = {{"measured", counts.variants.measured},
                         {"cached", counts.variants.cached},
                         {"unpriced", counts.variants.unpriced},
                         {"assumed", counts.variants.assumed},
                         {"too_long", counts.variants.too_long}};
  return {{"found", counts.found},
          {"distinct", counts.distinct},
          {"measured", counts.measured},
          {"rejected", counts.rejected},
          {"variants", variants}};
}

CandidateCounts CountsFrom(const Json& counts) {
  const Json& variants = counts.at("variants");
  return {counts.at("found"),
          counts.at("distinct"),
          counts.at("measured"),
          counts.at("rejected"),
          {variants.at("measured"), variants.at("cached"), variants.at("unpriced"), variants.value("assumed", size_t{0}),
           variants.value("too_long", size_t{0})}};
}

Json InputsJson(const CompileReport& report) {
  Json inputs = Json::object();
  for (const auto& [name, shape] : report.inputs) inputs[name] = shape;
  return inputs;
}

bool IsSpread(const PlanTiming& timing) { return timing.name == kOneAfterAnother || timing.name == kSideBySide; }

std::string NameInRace(const PlanTiming& timing, const CompileReport& report) {
  if (timing.name == "chosen") return "chosen (" + report.winner + ")";
  if (timing.name == kInFloat32) return timing.name + " (as far as known)";
  const bool is_of_several = IsSpread(timing) || timing.name == kBranchesInTurn || timing.name == kSearchedPlan;
  return is_of_several ? timing.name : timing.name + " alone";
}

Json ReportJson(const CompileReport& report);

/// Of several profiles.
Json WholeJson(const CompileReport& report) {
  Json profiles = Json::array();
  for (const CompileReport& profile : report.profiles) profiles.push_back(ReportJson(profile));
  return {{"model", report.model},
          {"threads", report.threads},
          {"elapsed_seconds", report.elapsed_seconds},
          {"budget_seconds", OrNull(report.budget_seconds)},
          {"candidates", CountsJson(report.candidates)},
          {"profiles", std::move(profiles)}};
}

Json ReportJson(const CompileReport& report) {
  if (!report.profiles.empty()) return WholeJson(report);
  Json plan = Json::array();
  for (const PlanEntry& entry : report.plan) {
    plan.push_back({{"backend", entry.backend},
                    {"variant", entry.variant},
                    {"operators", entry.operators},
                    {"nodes", entry.nodes},
                    {"cost_us", entry.cost_us},
                    {"margin_us", OrNull(entry.margin_us)},
                    {"partition", entry.symbol}});
    if (!entry.device.empty()) plan.back()["device"] = entry.device;
    if (!entry.form.empty()) plan.back()["form"] = entry.form;
    if (!entry.precision.empty()) plan.back()["precision"] = entry.precision;
    if (entry.work)
      plan.back()["work"] = {{"flops", entry.work->flops}, {"bytes", entry.work->bytes}, {"roofline_us", entry.work->roofline_us}};
  }
  Json timings = Json::object();
  Json titles = Json::object();
  Json ratios = Json::object();
  Json differences = Json::object();
  for (const PlanTiming& timing : report.end_to_end) {
    timings[timing.name] = timing.median_ms;
    titles[timing.name] = NameInRace(timing, report);
    ratios[timing.name] = timing.ratio;
    differences[timing.name] = OrNull(timing.difference);
  }
  Json missing = Json::object();
  for (const MissingPlan& plan : report.missing) missing[plan.name] = plan.reason;
  Json operators = Json::array();
  for (const OperatorPlacement& placement : report.operators) operators.push_back(OperatorJson(placement));
  Json json = {{"model", report.model},
               {"threads", report.threads},
               {"inputs", InputsJson(report)},
               {"pins", report.pins},
               {"forbids", report.forbids},
               {"plan", std::move(plan)},
               {"end_to_end_ms", std::move(timings)},
               {"end_to_end_title", std::move(titles)},
               {"end_to_end_ratio", std::move(ratios)},
               {"difference_from_reference", std::move(differences)},
               {"searcher", report.searcher},
               {"is_estimated", report.is_estimated},
               {"timed_here", report.timed_here},
               {"winner", report.winner},
               {"raced", report.raced},
               {"noise", OrNull(report.noise)},
               {"additive_error_us", OrNull(report.additive_error_us)},
               {"apparent_loss", OrNull(report.apparent_loss)},
               {"elapsed_seconds", report.elapsed_seconds},
               {"budget_seconds", OrNull(report.budget_seconds)},
               {"drift", report.drift},
               {"estimated_us", report.estimated_us},
               {"lower_bound_us", report.lower_bound_us},
               {"proved_lower_bound_us", report.proved_lower_bound_us},
               {"tie", TieJson(report.tie)},
               {"search_complete", report.search_complete},
               {"confidence", report.confidence},
               {"smallest_difference", report.smallest_difference},
               {"open", report.open},
               {"missing", std::move(missing)},
               {"not_compared", report.not_compared},
               {"rounding", report.rounding},
               {"stated_forms", report.stated_forms},
               {"kept_off", report.kept_off},
               {"remainder", report.remainder},
               {"decisions_left_out", report.decisions_left_out},
               {"candidates", CountsJson(report.candidates)},
               {"operators", std::move(operators)}};
  if (const std::optional<ReportedPrecision>& precision = report.precision)
    json["precision"] = {
        {"permitted", precision->name}, {"tolerance", precision->tolerance}, {"offered", precision->offered}, {"taken", precision->taken}};
  return json;
}

std::optional<ReportedPrecision> PrecisionFrom(const Json& report) {
  if (!report.contains("precision")) return std::nullopt;
  const Json& precision = report.at("precision");
  return ReportedPrecision{precision.at("permitted"), precision.at("tolerance"), precision.at("offered"), precision.at("taken")};
}

std::optional<PlanWork> WorkFrom(const Json& entry) {
  if (!entry.contains("work")) return std::nullopt;
  const Json& work = entry.at("work");
  return PlanWork{work.at("flops"), work.at("bytes"), work.at("roofline_us")};
}

CompileReport ReportFrom(const Json& json) {
  CompileReport report;
  report.model = json.at("model");
  report.threads = json.at("threads");
  for (const Json& profile : json.value("profiles", Json::array())) report.profiles.push_back(ReportFrom(profile));
  if (!report.profiles.empty()) {
    report.elapsed_seconds = json.value("elapsed_seconds", 0.0);
    if (json.contains("budget_seconds")) report.budget_seconds = NumberOrNothing(json.at("budget_seconds"));
    if (json.contains("candidates")) report.candidates = CountsFrom(json.at("candidates"));
    return report;
  }
  const Json inputs = json.value("inputs", Json::object());
  for (const auto& [name, shape] : inputs.items()) report.inputs.emplace_back(name, shape.get<Shape>());
  report.pins = json.value("pins", std::vector<std::string>());
  report.forbids = json.value("forbids", std::vector<std::string>());
  for (const Json& entry : json.at("plan")) {
    report.plan.push_back({entry.at("partition"), entry.at("backend"), entry.at("variant"), entry.at("operators"), entry.at("cost_us"),
                           NumberOrNothing(entry.at("margin_us")), entry.value("nodes", std::vector<std::string>()),
                           entry.value("device", std::string()), entry.value("form", std::string()), WorkFrom(entry),
                           entry.value("precision", std::string())});
  }
  for (const auto& [name, median] : json.at("end_to_end_ms").items()) {
    report.end_to_end.push_back(
        {name, median, json.at("end_to_end_ratio").at(name), NumberOrNothing(json.at("difference_from_reference").at(name))});
  }
  report.searcher = json.value("searcher", report.searcher);
  report.is_estimated = json.value("is_estimated", false);
  report.timed_here = json.value("timed_here", report.timed_here);
  report.winner = json.at("winner");
  report.raced = json.at("raced");
  report.noise = NumberOrNothing(json.at("noise"));
  report.additive_error_us = NumberOrNothing(json.at("additive_error_us"));
  report.apparent_loss = NumberOrNothing(json.at("apparent_loss"));
  report.elapsed_seconds = json.at("elapsed_seconds");
  report.budget_seconds = NumberOrNothing(json.at("budget_seconds"));
  report.drift = json.at("drift");
  report.estimated_us = json.at("estimated_us");
  report.lower_bound_us = json.at("lower_bound_us");
  report.proved_lower_bound_us = json.value("proved_lower_bound_us", 0.0);
  if (json.contains("tie") && !json.at("tie").is_null()) {
    const Json& tie = json.at("tie");
    report.tie = ReportedTie{tie.at("within"), tie.at("partitions"), tie.at("cost_us")};
  }
  report.search_complete = json.at("search_complete");
  report.confidence = json.value("confidence", report.confidence);
  report.smallest_difference = json.value("smallest_difference", report.smallest_difference);
  report.open = json.value("open", 0.0);  // files of before have none of these
  const Json missing = json.value("missing", Json::object());
  for (const auto& [name, reason] : missing.items()) report.missing.push_back({name, reason});
  report.not_compared = json.value("not_compared", "");
  report.rounding = json.value("rounding", "");
  report.stated_forms = json.value("stated_forms", std::vector<std::string>());
  report.kept_off = json.value("kept_off", std::vector<std::string>());
  report.remainder = json.value("remainder", "");
  report.precision = PrecisionFrom(json);
  report.decisions_left_out = json.value("decisions_left_out", size_t{0});
  report.candidates = CountsFrom(json.at("candidates"));
  for (const Json& placement : json.at("operators")) report.operators.push_back(OperatorFrom(placement));
  return report;
}

}  // namespace

std::string BackendAndDevice(const std::string& backend, const std::string& device) {
  return device.empty() ? backend : backend + "@" + device;
}

double EstimateAtPrices(const CompileReport& report) { return report.estimated_us / report.drift; }

double LikelyBoundAtPrices(const CompileReport& report) {
  return std::max(report.lower_bound_us / report.drift, report.proved_lower_bound_us);
}

CompileReport OfEveryCompile(CompileReport report) {
  for (CompileReport& profile : report.profiles) profile = OfEveryCompile(std::move(profile));
  report.raced = false;
  report.elapsed_seconds = 0;
  report.budget_seconds.reset();
  report.candidates.variants.measured = 0;
  report.candidates.variants.cached = 0;
  report.candidates.variants.too_long = 0;
  return report;
}

std::string ToJson(const CompileReport& report, JsonLines lines) {
  return ReportJson(report).dump(lines == JsonLines::kOne ? -1 : 2, ' ', false, Json::error_handler_t::replace);
}

Result<CompileReport> ReportFromJson(const std::string& text) {
  try {
    return ReportFrom(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return Fail(std::string("the report of the file is malformed: ") + error.what());
  }
}

std::string ProfileName(const CompileReport& report) {
  std::string text;
  for (const auto& [name, shape] : report.inputs) text += (text.empty() ? "" : " ") + name + "=" + ExtentsText(shape);
  return text;
}

namespace {

std::string StatementText(const CompileReport& report) {
  if (report.is_estimated) return "prices are a user's estimates; nothing was timed";
  if (!report.search_complete) return fmt::format("not settled: a cover of these candidates might be {:.1f}% cheaper", 100 * report.open);
  return fmt::format("with {:.0f}% confidence no cover of these candidates is more than {:.1f}% cheaper", 100 * report.confidence,
                     100 * report.smallest_difference);
}

}  // namespace

namespace {

/// What running on several CPUs at the same time has gained; nothing where it did not race.
std::string SideBySideText(const CompileReport& report) {
  const auto other = std::find_if(report.end_to_end.begin(), report.end_to_end.end(), IsSpread);
  if (other == report.end_to_end.end()) return {};
  const auto is_elsewhere = [](const PlanEntry& entry) { return entry.device.starts_with("cpu:"); };
  const auto elsewhere = std::count_if(report.plan.begin(), report.plan.end(), is_elsewhere);
  if (other->name == kOneAfterAnother)
    return fmt::format(
        "  side by side: {} of {} partitions run on other CPUs beside the host's, {:.2f} times as fast as one after another\n", elsewhere,
        report.plan.size(), other->ratio);
  return fmt::format("  side by side on several CPUs was {:.2f} times the chosen plan's time\n", other->ratio);
}

/// What was permitted, who took it, and what it did to the results.
std::string PrecisionText(const CompileReport& report) {
  if (!report.precision) return {};
  const ReportedPrecision& precision = *report.precision;
  std::string text = fmt::format("  {} permitted to a tolerance of {:.1e}: ", precision.name, precision.tolerance);
  if (precision.offered == 0) return text + "no backend has such kernels for this model on this processor\n";
  text += fmt::format("{} of {} partitions use it, of {} such kernels that were offered\n", precision.taken, report.plan.size(),
                      precision.offered);
  const std::optional<double> difference = report.end_to_end.empty() ? std::nullopt : report.end_to_end.front().difference;
  if (difference) text += fmt::format("  differs from the float32 reference by {:.1e} of the largest value\n", *difference);
  return text;
}

}  // namespace

std::string PlanTable(const CompileReport& report) {
  std::string text;
  for (const CompileReport& profile : report.profiles) text += "profile " + ProfileName(profile) + "\n" + PlanTable(profile);
  if (!report.profiles.empty()) return text + SecondsText(report);
  std::map<std::pair<std::string, std::string>, std::pair<size_t, double>> by_variant;
  for (const PlanEntry& entry : report.plan) {
    auto& [count, cost] = by_variant[{BackendAndDevice(entry.backend, entry.device), entry.variant}];
    ++count;
    cost += entry.cost_us;
  }
  text += fmt::format("plan: {} partitions, estimated {:.1f} us\n", report.plan.size(), EstimateAtPrices(report));
  text += "  " + StatementText(report);
  if (report.candidates.variants.assumed > 0)
    text += fmt::format(", if the {} kernels that never ran are like those that did", report.candidates.variants.assumed);
  text += fmt::format("\n  likely bound {:.1f} us, proved bound {:.1f} us\n", LikelyBoundAtPrices(report), report.proved_lower_bound_us);
  if (report.tie)
    text += fmt::format("  the cheapest has {} partitions and is {:.1f} us cheaper, which is less than makes a difference ({:.2f}%)\n",
                        report.tie->partitions, (report.estimated_us - report.tie->cost_us) / report.drift, 100 * report.tie->within);
  if (report.searcher != CompileReport().searcher) text += "  the plan called searched is that of --search " + report.searcher + "\n";
  for (const std::string& backend : report.timed_here) text += "  timed in this process and in no worker: " + backend + "\n";
  for (const std::string& pin : report.pins) text += "  --pin " + pin + "\n";
  for (const std::string& forbid : report.forbids) text += "  --forbid " + forbid + "\n";
  for (const auto& [variant, total] : by_variant) {
    text += fmt::format("  {:<10} {:<22} {:>4} partitions {:>12.1f} us\n", variant.first, variant.second, total.first, total.second);
  }
  text += PrecisionText(report);
  for (const std::string& form : report.stated_forms) text += "  " + form + "\n";
  for (const std::string& kept_off : report.kept_off) text += "  " + kept_off + "\n";
  if (!report.remainder.empty()) text += "  behind the plan, on the reference kernels: " + report.remainder + "\n";
  if (report.end_to_end.empty()) return text;
  text += fmt::format("end to end ({}, {} threads){:>14}{:>16}\n", report.raced ? "raced now" : "raced earlier", report.threads,
                      "median ms", "times chosen");
  for (const PlanTiming& timing : report.end_to_end) {
    text += fmt::format("  {:<30}{:>14.3f}{:>16.3f}\n", NameInRace(timing, report), timing.median_ms, timing.ratio);
  }
  text += SideBySideText(report);
  for (const MissingPlan& plan : report.missing) text += fmt::format("  {:<30} did not race: {}\n", plan.name, plan.reason);
  if (!report.not_compared.empty()) text += "  not compared with the reference: " + report.not_compared + "\n";
  if (!report.rounding.empty()) text += "  " + report.rounding + "\n";
  const std::string noise = report.noise ? fmt::format("{:.2f}%", 100 * *report.noise) : "not known, too few rounds";
  text += fmt::format(
      "  noise of this race (A/A): {}; the machine ran {:.2f} times as slowly as when the prices were taken, so the estimate "
      "for it is {:.1f} us\n",
      noise, report.drift, report.estimated_us);
  return text + HonestTotals(report);
}

}  // namespace collage
