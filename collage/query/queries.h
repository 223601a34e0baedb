#pragma once

// One function a kind of query: what the program of a case is asked, answered in the form that docs/query.md describes. `query` is
// the field "query" of the case.

#include "collage/query/program.h"

namespace collage {

Result<Json> AnswerSubGraph(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerPattern(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerForms(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerRule(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerSearch(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerPrice(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerPasses(const QueryProgram& program, const JsonReader& query);
/// A search whose candidates lie on devices ("devices" in place of "targets").
Result<Json> AnswerDeviceSearch(const QueryProgram& program, const JsonReader& query);
/// Takes no program.
Result<Json> AnswerVirtualDevice(const JsonReader& query);
Result<Json> AnswerHoistDevices(const QueryProgram& program, const JsonReader& query);
Result<Json> AnswerPlanDevices(const QueryProgram& program, const JsonReader& query);

}  // namespace collage
