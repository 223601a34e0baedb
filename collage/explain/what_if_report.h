#pragma once

#include <string>
#include <vector>

#include "collage/explain/report.h"
#include "collage/ir/model_metadata.h"
#include "collage/search/what_if.h"

namespace collage {

/// What a compiled file carries: the report, and beside it, under "recorded", every price that its search knew, so that `collage explain`
/// can search again where neither the model nor the backends nor the cache are.
std::string ToMetadata(const CompileReport& report, const RecordedProblem& recorded);
/// The metadata with another report, and what is recorded beside it.
std::string WithReport(const std::string& metadata, const CompileReport& report);
/// Of a program of several profiles, from what each would carry alone.
std::string JoinMetadata(const std::vector<std::string>& profiles);
/// The metadata with the model that the file is compiled from: which one it is, and under "model_metadata" what it says of itself.
std::string WithModel(const std::string& metadata, const std::string& identity, const ModelMetadata& model);
/// Empty where it is not said. Errors when the text is no metadata.
Result<std::string> ModelIdentityOfMetadata(const std::string& metadata);
/// The reverse of JoinMetadata: one for each profile. Errors when the text is no metadata.
Result<std::vector<std::string>> MetadataOfProfiles(const std::string& metadata);
/// The report alone, as ToJson(report) wrote it, and what the model says of itself. Errors when the text is no metadata.
Result<std::string> ReportOfMetadata(const std::string& metadata);
/// Errors when the text is no metadata, or carries no prices.
Result<RecordedProblem> RecordedOfMetadata(const std::string& metadata);

/// The question as it was asked, both plans with their costs, and what changes hands: one line for what leaves one partition for
/// another, or for each operator.
std::string WhatIfText(const RecordedProblem& recorded, const WhatIf& question, const WhatIfAnswer& answer, ExplanationDetail detail);
/// For programs: `question`, `before`, `after`, `difference_us`, `lower_bound_us`, `changes`. Key order is fixed.
std::string WhatIfJson(const RecordedProblem& recorded, const WhatIf& question, const WhatIfAnswer& answer);

}  // namespace collage
