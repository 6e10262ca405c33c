/* ACLE's DSP intrinsics in portable C, so that kernels made of them run under a host's sanitizers. */
#ifndef FAKE_ARM_ACLE_H
#define FAKE_ARM_ACLE_H

#include <stdint.h>

typedef int32_t int16x2_t;
typedef int32_t int8x4_t;

static inline int16x2_t __sxtb16(int8x4_t x)
{
    const uint32_t v = (uint32_t)x;
    const uint32_t low = (uint32_t)(int32_t)(int8_t)(v & 0xFFu);
    const uint32_t high = (uint32_t)(int32_t)(int8_t)(v >> 16 & 0xFFu);
    return (int16x2_t)((low & 0xFFFFu) | high << 16);
}

static inline int32_t __smlad(int16x2_t x, int16x2_t y, int32_t sum)
{
    const uint32_t u = (uint32_t)x, v = (uint32_t)y;
    const int32_t low = (int32_t)(int16_t)(u & 0xFFFFu) * (int16_t)(v & 0xFFFFu);
    const int32_t high = (int32_t)(int16_t)(u >> 16) * (int16_t)(v >> 16);
    return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
}

#endif
