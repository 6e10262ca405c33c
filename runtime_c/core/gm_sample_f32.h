/* SPDX-License-Identifier: Apache-2.0
 * Values of float images (or lines, or volumes) at coordinates that are computed at run time. */
#ifndef GM_SAMPLE_F32_H
#define GM_SAMPLE_F32_H

#include <math.h>

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t channels;
    int32_t points;
    int32_t dims;    /* spatial dimensions, 1 to 3 */
    int32_t size[3]; /* of each of them; 1 beyond dims */
    int32_t taps;    /* in each dimension: 1 nearest, 2 linear, 4 cubic */
    int32_t padding; /* outside: 0 zeros, 1 the border, 2 a reflection */
    int32_t corners; /* reflected at 1 the centres of the outermost elements, 0 their edges */
} gm_sample_f32_t;

GM_INLINE float gm_sample_reflect(float x, float low, float high)
{
    const float range = high - low;
    const float beyond = x < low ? low - x : x > high ? x - high : 0.0f;
    float turns;
    float rest;
    int back;
    if (beyond == 0.0f || range <= 0.0f) {
        return range <= 0.0f ? low : x;
    }
    turns = floorf(beyond / range);
    rest = beyond - turns * range;
    back = fmodf(turns, 2.0f) != 0.0f;
    return (x < low) != back ? low + rest : high - rest;
}

/* The coordinate of something inside, where the padding is no zero. */
GM_INLINE float gm_sample_inside(float x, int32_t size, int32_t padding, int32_t corners)
{
    const float last = (float)(size - 1);
    const float edge = corners ? 0.0f : 0.5f;
    if (padding == 2) {
        return gm_sample_reflect(x, -edge, last + edge);
    }
    if (padding == 1) {
        return x < -edge ? 0.0f : x > last + edge ? last : x;
    }
    return x;
}

/* The element at an integer coordinate, -1 for a zero. */
GM_INLINE int32_t gm_sample_at(float x, int32_t size, int32_t padding, int32_t corners)
{
    const float inside = gm_sample_inside(x, size, padding, corners);
    if (padding == 0 && !(inside >= 0.0f && inside <= (float)(size - 1))) {
        return -1;
    }
    if (!(inside > 0.0f)) {
        return 0;
    }
    return inside > (float)(size - 1) ? size - 1 : (int32_t)inside;
}

/* Weight of tap t for the fraction x between the two elements around it. */
GM_INLINE float gm_sample_weight(float x, int32_t t, int32_t taps)
{
    const float a = -0.75f;
    if (taps == 1) {
        return 1.0f;
    }
    if (taps == 2) {
        return t == 0 ? 1.0f - x : x;
    }
    {
        const float away = t < 2 ? x : 1.0f - x;
        const float far = away + 1.0f;
        if (t == 1 || t == 2) {
            return ((a + 2.0f) * away - (a + 3.0f)) * away * away + 1.0f;
        }
        return ((a * far - 5.0f * a) * far + 8.0f * a) * far - 4.0f * a;
    }
}

/* x: [batch][channels][size], at: [batch][points][dims], y: [batch][channels][points]. */
GM_INLINE void gm_sample_f32_core(const gm_sample_f32_t *p, float *GM_RESTRICT y,
                                  const float *GM_RESTRICT x, const float *GM_RESTRICT at)
{
    const int32_t plane = p->size[0] * p->size[1] * p->size[2];
    int32_t combinations = 1;
    for (int32_t d = 0; d < p->dims; d++) {
        combinations *= p->taps;
    }
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t i = 0; i < p->points; i++) {
            int32_t place[3][4] = {{0}};
            float weight[3][4] = {{0.0f}};
            for (int32_t d = 0; d < p->dims; d++) {
                const int32_t size = p->size[d];
                const float exact = p->taps == 1 ? rintf(at[d]) : at[d];
                const float c = gm_sample_inside(exact, size, p->padding, p->corners);
                const float first = p->taps == 1 ? c : floorf(c);
                for (int32_t t = 0; t < p->taps; t++) {
                    const float near = first + (float)(p->taps == 4 ? t - 1 : t);
                    place[d][t] = gm_sample_at(near, size, p->padding, p->corners);
                    weight[d][t] = gm_sample_weight(c - first, t, p->taps);
                }
            }
            for (int32_t c = 0; c < p->channels; c++) {
                const float *from = x + c * plane;
                float sum = 0.0f;
                for (int32_t k = 0; k < combinations; k++) {
                    int32_t rest = k;
                    int32_t offset = 0;
                    int inside = 1;
                    float product = 1.0f;
                    for (int32_t d = p->dims - 1; d >= 0; d--) {
                        const int32_t t = rest % p->taps;
                        int32_t step = 1;
                        for (int32_t e = d + 1; e < p->dims; e++) {
                            step *= p->size[e];
                        }
                        rest /= p->taps;
                        inside = inside && place[d][t] >= 0;
                        offset += place[d][t] * step;
                        product *= weight[d][t];
                    }
                    if (inside) {
                        sum += product * from[offset];
                    }
                }
                y[c * p->points + i] = sum;
            }
            at += p->dims;
        }
        x += p->channels * plane;
        y += p->channels * p->points;
    }
}

void gm_sample_f32(const gm_sample_f32_t *p, float *GM_RESTRICT y, const float *GM_RESTRICT x,
                   const float *GM_RESTRICT at);

#ifdef __cplusplus
}
#endif

#endif
