#include "collage/fleet/machine_type.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "collage/support/clock.h"

namespace collage {
namespace {

// What machines of one kind differ by, and less than the estimate of a plan may be wrong by (docs/design/measuring.md).
constexpr double kSameMachine = 0.05;

constexpr double kPicoseconds = 1e12;

/// The least time of runs for a while: that of one that nothing has disturbed.
template <class Run>
double LeastSeconds(double seconds, const Run& run) {
  double least = 1e9;
  for (const Clock::time_point start = Clock::now(); Clock::SecondsSince(start) < seconds;) {
    const Clock::time_point begin = Clock::now();
    run();
    least = std::min(least, Clock::SecondsSince(begin));
  }
  return least;
}

}  // namespace

const char* const kMachineTables =
    "CREATE TABLE IF NOT EXISTS machine(device TEXT NOT NULL, type BIGINT NOT NULL, work TEXT NOT NULL, low_picoseconds BIGINT NOT NULL,"
    " high_picoseconds BIGINT NOT NULL, PRIMARY KEY(device, type, work));";

Calibration Calibrate() {
  constexpr int kRounds = 16;                // an interval of the median needs six
  constexpr double kSecondsOfRound = 0.015;  // half a second in all: a worker does it once, when it starts
  // Within a core's own cache; and more than the caches of most processors hold.
  std::vector<float> few(size_t{1} << 12, 1.5f);
  std::vector<float> many(size_t{1} << 24, 1.5f);
  volatile float kept = 0;
  const auto arithmetic = [&] {
    constexpr int kPasses = 64;
    for (int pass = 0; pass < kPasses; ++pass) {
      for (float& value : few) value = value * 0.999f + 0.001f;
    }
    kept = few.front();
  };
  const auto memory = [&] {
    constexpr size_t kStride = 16;  // floats of a cache line
    float sum = 0;
    for (size_t i = 0; i < many.size(); i += kStride) sum += many[i];
    kept = sum;
  };
  std::array<std::vector<double>, Calibration::kWorks.size()> seconds;
  for (int round = 0; round < kRounds; ++round) {
    seconds[0].push_back(LeastSeconds(kSecondsOfRound, arithmetic));
    seconds[1].push_back(LeastSeconds(kSecondsOfRound, memory));
  }
  Calibration calibration;
  for (size_t work = 0; work < seconds.size(); ++work) calibration.seconds[work] = *MedianInterval(seconds[work], Declared().confidence);
  return calibration;
}

bool Agree(const Calibration& a, const Calibration& b) {
  for (size_t work = 0; work < a.seconds.size(); ++work) {
    if (a.seconds[work].low > b.seconds[work].high * (1 + kSameMachine)) return false;
    if (b.seconds[work].low > a.seconds[work].high * (1 + kSameMachine)) return false;
  }
  return true;
}

Result<std::string> MachineType(CacheDatabase& database, const std::string& fingerprint, const Calibration& calibration) {
  // Two machines that come at the same time must not both be the first.
  CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(database));
  std::map<int64_t, Calibration> known;
  const auto query = database.Prepare("SELECT type, work, low_picoseconds, high_picoseconds FROM machine WHERE device=$1");
  query->Bind(1, fingerprint);
  while (COLLAGE_TRY(query->Next())) {
    const auto work = std::find(Calibration::kWorks.begin(), Calibration::kWorks.end(), query->Text(1));
    if (work == Calibration::kWorks.end()) continue;
    known[query->Integer(0)].seconds[static_cast<size_t>(work - Calibration::kWorks.begin())] = {
        static_cast<double>(query->Integer(2)) / kPicoseconds, static_cast<double>(query->Integer(3)) / kPicoseconds};
  }
  const auto name = [&](int64_t type) { return type == 1 ? fingerprint : fingerprint + "#" + std::to_string(type); };
  for (const auto& [type, other] : known) {
    if (Agree(calibration, other)) return name(type);
  }
  const int64_t type = known.empty() ? 1 : known.rbegin()->first + 1;
  for (size_t work = 0; work < Calibration::kWorks.size(); ++work) {
    const auto insert = database.Prepare("INSERT INTO machine VALUES($1, $2, $3, $4, $5)");
    insert->Bind(1, fingerprint);
    insert->Bind(2, type);
    insert->Bind(3, std::string(Calibration::kWorks[work]));
    insert->Bind(4, static_cast<int64_t>(calibration.seconds[work].low * kPicoseconds));
    insert->Bind(5, static_cast<int64_t>(calibration.seconds[work].high * kPicoseconds));
    COLLAGE_TRY_STATUS(insert->Run());
  }
  COLLAGE_TRY_STATUS(transaction.Commit());
  return name(type);
}

}  // namespace collage
