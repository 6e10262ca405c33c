/* SPDX-License-Identifier: Apache-2.0
 * Bilinear resizing of NHWC, int16: weights in 65536ths, a sum in 2^32ths, requantized. */
#ifndef GM_RESIZE_LINEAR_S16_H
#define GM_RESIZE_LINEAR_S16_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t channels;
    int32_t out_height; /* of y */
    int32_t out_width;
    int32_t x_zero_point;
    int32_t multiplier; /* of sx / sy / 2^14 */
    int32_t zero_point; /* of y */
} gm_resize_linear_s16_t;

/* From a to b, `part` of the way, times 65536. */
GM_INLINE int64_t gm_resize_linear_between(int64_t a, int64_t b, int32_t part)
{
    return a * 65536 + (b - a) * part;
}

/* Row i of y lies between rows[i] and the row after it, row_weights[i] / 65536 of the way; the row
 * after is not read where the weight is 0. Columns likewise. y must not overlap x. */
GM_INLINE void gm_resize_linear_s16_core(const gm_resize_linear_s16_t *p, int16_t *GM_RESTRICT y,
                                         const int16_t *GM_RESTRICT x,
                                         const int32_t *GM_RESTRICT rows,
                                         const int32_t *GM_RESTRICT row_weights,
                                         const int32_t *GM_RESTRICT cols,
                                         const int32_t *GM_RESTRICT col_weights)
{
    const int32_t pitch = p->width * p->channels;
    const int64_t zero = p->x_zero_point * INT64_C(0x100000000);
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t i = 0; i < p->out_height; i++) {
            const int32_t down = row_weights[i];
            const int16_t *top = x + rows[i] * pitch;
            const int16_t *bottom = down > 0 ? top + pitch : top;
            for (int32_t j = 0; j < p->out_width; j++) {
                const int32_t right = col_weights[j];
                const int32_t here = cols[j] * p->channels;
                const int32_t next = right > 0 ? here + p->channels : here;
                for (int32_t c = 0; c < p->channels; c++) {
                    const int64_t upper =
                        gm_resize_linear_between(top[here + c], top[next + c], right);
                    const int64_t lower =
                        gm_resize_linear_between(bottom[here + c], bottom[next + c], right);
                    const int64_t sum = gm_resize_linear_between(upper, lower, down) - zero;
                    y[c] = (int16_t)gm_requant_wide(sum, p->multiplier, -18, p->zero_point,
                                                    INT16_MIN, INT16_MAX);
                }
                y += p->channels;
            }
        }
        x += p->height * pitch;
    }
}

void gm_resize_linear_s16(const gm_resize_linear_s16_t *p, int16_t *GM_RESTRICT y,
                          const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                          const int32_t *GM_RESTRICT row_weights, const int32_t *GM_RESTRICT cols,
                          const int32_t *GM_RESTRICT col_weights);

#ifdef __cplusplus
}
#endif

#endif
