/* SPDX-License-Identifier: Apache-2.0
 * 16-bit floating-point formats, stored as uint16_t: to and from float, rounded half to even. */
#ifndef GM_HALF_H
#define GM_HALF_H

#include "gm_types.h"

GM_INLINE uint32_t gm_bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

GM_INLINE float gm_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

GM_INLINE float gm_f16_to_f32(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t rest = half & 0x7fffu;
    if (rest < 0x0400u) { /* zero and subnormal numbers: units of 2^-24 */
        const float small = (float)rest * 5.9604644775390625e-8f;
        return gm_f32_of_bits(gm_bits_of_f32(small) | sign);
    }
    if (rest >= 0x7c00u) {
        return gm_f32_of_bits(sign | 0x7f800000u | (rest & 0x03ffu) << 13);
    }
    return gm_f32_of_bits(sign | ((rest << 13) + 0x38000000u));
}

GM_INLINE uint16_t gm_f32_to_f16(float x)
{
    const uint32_t bits = gm_bits_of_f32(x);
    const uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (rest >= 0x47800000u) { /* 65536 and more */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (rest < 0x38800000u) { /* below 2^-14: adding 1/2 leaves units of 2^-24 */
        const float shifted = gm_f32_of_bits(rest) + 0.5f;
        return (uint16_t)(sign | (gm_bits_of_f32(shifted) - 0x3f000000u));
    }
    rest += 0x0fffu + (rest >> 13 & 1u);
    return (uint16_t)(sign | (rest - 0x38000000u) >> 13);
}

GM_INLINE float gm_bf16_to_f32(uint16_t half)
{
    return gm_f32_of_bits((uint32_t)half << 16);
}

GM_INLINE uint16_t gm_f32_to_bf16(float x)
{
    const uint32_t bits = gm_bits_of_f32(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x0040u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
