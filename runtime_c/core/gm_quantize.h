/* SPDX-License-Identifier: Apache-2.0
 * One element from float to integer: clamp(round_half_even(x / scale) + zero_point), as ONNX
 * QuantizeLinear: NaN becomes the lowest integer. Plain IEEE arithmetic, the same bits everywhere,
 * unless the compiler keeps excess precision (clang for x87) or is told to be unsafe (-ffast-math).
 */
#ifndef GM_QUANTIZE_H
#define GM_QUANTIZE_H

#include "gm_types.h"

/* Round half to even for |x| < 2^22: adding 1.5 * 2^23 leaves no room for a fraction. */
GM_INLINE int32_t gm_round_small_f32(float x)
{
    const float shifted = x + 12582912.0f;
    return (int32_t)(shifted - 12582912.0f);
}

/* low <= result <= high; low - zero_point and high - zero_point lie within +-2^18. */
GM_INLINE int32_t gm_quantize_f32(float x, float scale, int32_t zero_point, int32_t low,
                                  int32_t high)
{
    const float bottom = (float)(low - zero_point);
    const float top = (float)(high - zero_point);
    const float real = x / scale;
    const float above = real > bottom ? real : bottom; /* NaN compares false */
    return gm_round_small_f32(above < top ? above : top) + zero_point;
}

GM_INLINE int8_t gm_quantize_f32_s8(float x, float scale, int32_t zero_point)
{
    return (int8_t)gm_quantize_f32(x, scale, zero_point, -128, 127);
}

GM_INLINE uint8_t gm_quantize_f32_u8(float x, float scale, int32_t zero_point)
{
    return (uint8_t)gm_quantize_f32(x, scale, zero_point, 0, 255);
}

GM_INLINE int16_t gm_quantize_f32_s16(float x, float scale, int32_t zero_point)
{
    return (int16_t)gm_quantize_f32(x, scale, zero_point, -32768, 32767);
}

GM_INLINE uint16_t gm_quantize_f32_u16(float x, float scale, int32_t zero_point)
{
    return (uint16_t)gm_quantize_f32(x, scale, zero_point, 0, 65535);
}

GM_INLINE int32_t gm_quantize_f32_s32(float x, float scale, int32_t zero_point)
{
    const float real = x / scale;
    int64_t whole = INT32_MIN;
    if (real >= 4294967296.0f) {
        whole = INT64_C(4294967296);
    } else if (real > -4294967296.0f) {
        const int is_small = real > -4194304.0f && real < 4194304.0f;
        whole = (int64_t)real;
        if (is_small) {
            whole = gm_round_small_f32(real);
        } else if (real > -8388608.0f && real < 8388608.0f) {
            /* one bit of fraction: a half is rounded to even */
            const float half = real - (float)whole;
            whole += half > 0.0f ? whole & 1 : half < 0.0f ? -(whole & 1) : 0;
        }
    } else if (real <= -4294967296.0f) {
        whole = INT64_C(-4294967296);
    }
    whole += real == real ? zero_point : 0;
    return (int32_t)(whole < INT32_MIN ? INT32_MIN : whole > INT32_MAX ? INT32_MAX : whole);
}

#endif
