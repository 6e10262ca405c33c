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
/* A function of a header that is called, not inlined: what many places need and is long. */
#define GM_OUTLINE static __attribute__((noinline, unused))
/* Kernels are weak, so that two generated networks, each with its copy, link into one firmware. */
#define GM_KERNEL __attribute__((weak))
/* A layer with constant parameters stays a function of its own: its stack frame ends with it. */
#define GM_NOINLINE __attribute__((noinline))
/* Keeps memory accesses of two layers apart, whose buffers may share memory with other types. */
#define GM_FENCE() __asm__ volatile("" ::: "memory")
#else
#define GM_RESTRICT
#define GM_INLINE static inline
#define GM_OUTLINE static inline
#define GM_KERNEL
#define GM_NOINLINE
#define GM_FENCE() ((void)0)
#endif

#endif
