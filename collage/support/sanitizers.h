#pragma once

// COLLAGE_ADDRESS_SANITIZER and COLLAGE_THREAD_SANITIZER: 1 where that sanitizer watches, else 0. GCC says it by macros, Clang by features.

#ifdef __has_feature
#define COLLAGE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define COLLAGE_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || COLLAGE_HAS_FEATURE(address_sanitizer)
#define COLLAGE_ADDRESS_SANITIZER 1
#else
#define COLLAGE_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || COLLAGE_HAS_FEATURE(thread_sanitizer)
#define COLLAGE_THREAD_SANITIZER 1
#else
#define COLLAGE_THREAD_SANITIZER 0
#endif

#undef COLLAGE_HAS_FEATURE
