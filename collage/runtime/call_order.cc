#include "collage/runtime/call_order.h"

#include <algorithm>
#include <set>
#include <utility>

namespace collage {
namespace {

constexpr size_t kHost = 0;

class Scheduler {
 public:
  Scheduler(const Program& program, const std::vector<size_t>& streams)
      : program_(program),
        streams_(streams),
        given_at_(program.calls.size(), 0),
        readers_(program.calls.size()),
        missing_(readers_.size()) {
    std::vector<std::set<size_t>> makers_of(program.values.size());
    for (size_t call = 0; call < program.calls.size(); ++call) {
      for (const size_t value : program.calls[call].outputs) makers_of[value] = {call};
    }
    for (size_t value = 0; value < makers_of.size(); ++value) {
      for (const size_t source : program.values[value].Sources())
        makers_of[value].insert(makers_of[source].begin(), makers_of[source].end());
    }
    made_by_.resize(program.calls.size());
    for (size_t call = 0; call < program.calls.size(); ++call) {
      std::set<size_t> makers;
      for (const size_t value : program.calls[call].inputs) makers.insert(makers_of[value].begin(), makers_of[value].end());
      for (const size_t from : makers) readers_[from].push_back(call);
      missing_[call] = makers.size();
      made_by_[call].assign(makers.begin(), makers.end());
    }
  }

  std::vector<size_t> Order() {
    for (size_t call = 0; call < missing_.size(); ++call) {
      if (missing_[call] == 0) MakeReady(call);
    }
    std::vector<size_t> order;
    while (order.size() < program_.calls.size()) {
      const size_t call = TakeNext();
      given_at_[call] = order.size() + 1;
      order.push_back(call);
      for (const size_t reader : readers_[call]) {
        if (--missing_[reader] == 0) MakeReady(reader);
      }
    }
    return order;
  }

 private:
  /// The last position in the order for which the host has to wait before the call; 0: none.
  [[nodiscard]] size_t WaitsFor(size_t call) const {
    size_t last = 0;
    for (const size_t maker : made_by_[call]) {
      const bool is_pending = streams_[maker] != kHost && streams_[maker] != streams_[call] && given_at_[maker] > waited_;
      if (is_pending) last = std::max(last, given_at_[maker]);
    }
    return last;
  }

  void MakeReady(size_t call) {
    if (const size_t last = WaitsFor(call)) {
      waiting_.emplace(last, call);
    } else {
      ready_.emplace(streams_[call] == kHost, call);
    }
  }

  size_t TakeNext() {
    if (ready_.empty()) {
      // Streams are in order, so whoever waited for no more is free now, too. Of several streams this takes the later one for waited for
      // as well, which changes the order only.
      waited_ = waiting_.begin()->first;
      while (!waiting_.empty() && waiting_.begin()->first <= waited_) {
        const size_t call = waiting_.begin()->second;
        waiting_.erase(waiting_.begin());
        ready_.emplace(streams_[call] == kHost, call);
      }
    }
    const size_t call = ready_.begin()->second;
    ready_.erase(ready_.begin());
    return call;
  }

  const Program& program_;
  const std::vector<size_t>& streams_;
  std::vector<size_t> given_at_;              // by call: position in the order, from 1 on; 0: not yet
  std::vector<std::vector<size_t>> readers_;  // by call: who reads what it makes
  std::vector<std::vector<size_t>> made_by_;  // by call: who makes what it reads
  std::vector<size_t> missing_;               // by call: how many of those have not been given
  std::set<std::pair<bool, size_t>> ready_;   // other streams' first
  std::set<std::pair<size_t, size_t>> waiting_;
  size_t waited_ = 0;
};

}  // namespace

std::vector<size_t> CallOrder(const Program& program, const std::vector<size_t>& streams) {
  std::vector<size_t> order(program.calls.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool is_hosts = std::all_of(streams.begin(), streams.end(), [](size_t stream) { return stream == kHost; });
  return is_hosts ? order : Scheduler(program, streams).Order();
}

}  // namespace collage
