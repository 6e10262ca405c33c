/* SPDX-License-Identifier: Apache-2.0
 * Shared definitions of the glowmcu kernels: language and compiler differences, nothing else. */
#ifndef GM_TYPES_H
#define GM_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define GM_RESTRICT __restrict
#define GM_INLINE static inline __attribute__((always_inline, unused))
/* Kernels are weak, so that two generated networks, each with its copy, link into one firmware. */
#define GM_KERNEL __attribute__((weak))
#else
#define GM_RESTRICT
#define GM_INLINE static inline
#define GM_KERNEL
#endif

#endif
