/* SPDX-License-Identifier: Apache-2.0
 * Floating-point formats of 8 and 4 bits, stored one to a byte: to and from float. Rounded half to
 * even; what is too large saturates, or becomes infinity or NaN, as the caller says. */
#ifndef GM_SMALL_FLOAT_H
#define GM_SMALL_FLOAT_H

#include "gm_half.h"

/* sign: the sign's bit; mantissa: bits; bias: of the exponent; largest: code of the largest finite
 * number; beyond, infinite, nan: codes of what is too large, of infinity and of NaN; zeros: 2 where
 * there is a negative zero, else 1. */
GM_INLINE uint8_t gm_f32_to_small(float x, uint32_t sign, uint32_t mantissa, int32_t bias,
                                  uint32_t largest, uint32_t beyond, uint32_t infinite,
                                  uint32_t nan, int32_t zeros)
{
    const uint32_t bits = gm_bits_of_f32(x);
    const uint32_t rest = bits & 0x7fffffffu;
    const int32_t exponent = (int32_t)(rest >> 23) - 127 + bias;
    uint32_t shift = 23u - mantissa;
    uint32_t code = 0;
    if (rest > 0x7f800000u) {
        return (uint8_t)nan;
    }
    if (rest == 0x7f800000u) {
        code = infinite;
    } else if (exponent > -24) {
        uint32_t number = (rest & 0x7fffffu) | 0x800000u;
        if (exponent < 1) { /* subnormal */
            shift += (uint32_t)(1 - exponent);
        } else {
            number = (uint32_t)exponent << 23 | (rest & 0x7fffffu);
        }
        if (shift < 26u) {
            const uint32_t half = (1u << (shift - 1u)) - 1u;
            code = (number + half + (number >> shift & 1u)) >> shift;
        }
        code = code > largest ? beyond : code;
    }
    if ((code == 0 && zeros == 1) || code == 1u << sign) {
        return (uint8_t)code;
    }
    return (uint8_t)(code | (bits >> 31) << sign);
}

/* infinite: code of infinity, nan: of the least NaN, both without sign, 256 where there is none. */
GM_INLINE float gm_small_to_f32(uint8_t stored, uint32_t sign, uint32_t mantissa, int32_t bias,
                                uint32_t infinite, uint32_t nan, int32_t zeros)
{
    const uint32_t code = stored & ((1u << sign) - 1u);
    const uint32_t negative = (uint32_t)stored >> sign & 1u;
    const uint32_t exponent = code >> mantissa;
    const uint32_t rest = code & ((1u << mantissa) - 1u);
    uint32_t bits;
    if (code >= nan || (zeros == 1 && code == 0 && negative != 0)) {
        return gm_f32_of_bits(0x7fc00000u);
    }
    if (code == infinite) {
        bits = 0x7f800000u;
    } else if (exponent == 0) {
        const float unit = gm_f32_of_bits((uint32_t)(128 - bias - (int32_t)mantissa) << 23);
        bits = gm_bits_of_f32(unit * (float)(int32_t)rest);
    } else {
        bits = (uint32_t)((int32_t)exponent - bias + 127) << 23 | rest << (23u - mantissa);
    }
    return gm_f32_of_bits(bits | negative << 31);
}

/* Powers of two without sign; part: what is added below the exponent, to round up or to nearest. */
GM_INLINE uint8_t gm_f32_to_e8m0(float x, uint32_t part, uint32_t largest)
{
    const uint32_t rest = gm_bits_of_f32(x) & 0x7fffffffu;
    const uint32_t code = (rest + part) >> 23;
    if (rest >= 0x7f800000u) {
        return 0xffu;
    }
    return (uint8_t)(code > largest ? largest : code);
}

GM_INLINE float gm_e8m0_to_f32(uint8_t code)
{
    if (code == 0xffu) {
        return gm_f32_of_bits(0x7fc00000u);
    }
    return gm_f32_of_bits(code == 0 ? 0x00400000u : (uint32_t)code << 23);
}

#endif
