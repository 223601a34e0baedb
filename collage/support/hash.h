#pragma once

#include <cstdint>
#include <string_view>

namespace collage {

/// FNV-1a over bytes (Fowler, Noll, Vo; 64 bit). Stable across processes and machines: cache keys are built from it.
constexpr uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325ull) {
  for (unsigned char byte : bytes) {
    seed ^= byte;
    seed *= 0x100000001b3ull;
  }
  return seed;
}

/// Mixes one 64-bit value into a hash (finaliser of splitmix64, Steele et al. 2014).
constexpr uint64_t HashCombine(uint64_t seed, uint64_t value) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ull + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace collage
