/* SPDX-License-Identifier: Apache-2.0
 * Convolution, int16 with int8 weights, NHWC, straight from its definition, sums of 64 bits: for
 * windows of any height, padding of any value and sums that could pass 2^31; needs no scratch. */
#ifndef GM_CONV2D_S16_DIRECT_H
#define GM_CONV2D_S16_DIRECT_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t out_height;
    int32_t out_width;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t pad_top;
    int32_t pad_left;
    int32_t padded_width; /* pixels of a padded row, not used here */
    int32_t groups;
    int32_t channels;     /* input channels of one group */
    int32_t out_channels; /* output channels of one group */
    int32_t fill;         /* the zero point of x */
    int32_t shift;        /* left shift of the accumulator, -31..15 */
    int32_t zero_point;   /* of y */
    int32_t low;          /* clamp of y, -32768 <= low <= high <= 32767 */
    int32_t high;
    int32_t descending; /* not used here */
} gm_conv2d_s16_direct_t;

/* Returns the products of one window: x and w at the start of a group, iy and ix its first tap. */
GM_INLINE int64_t gm_conv2d_s16_direct_window(const gm_conv2d_s16_direct_t *p, int64_t acc,
                                              const int16_t *x, const int8_t *w, int32_t iy,
                                              int32_t ix)
{
    const int32_t pitch = p->groups * p->channels;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int32_t row = iy + i * p->dilation_height;
        for (int32_t j = 0; j < p->kernel_width; j++) {
            const int32_t col = ix + j * p->dilation_width;
            const int inside = row >= 0 && row < p->height && col >= 0 && col < p->width;
            if (inside) {
                const int16_t *u = x + (row * p->width + col) * pitch;
                for (int32_t k = 0; k < p->channels; k++) {
                    acc += u[k] * w[k];
                }
            } else {
                for (int32_t k = 0; k < p->channels; k++) {
                    acc += p->fill * w[k];
                }
            }
            w += p->channels;
        }
    }
    return acc;
}

/* w: [groups * out_channels][kernel_height][kernel_width][channels]; bias, multiplier: one for each
 * output channel. y must not overlap x. */
GM_INLINE void gm_conv2d_s16_direct_core(const gm_conv2d_s16_direct_t *p, int16_t *GM_RESTRICT y,
                                         const int16_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                         const int64_t *GM_RESTRICT bias,
                                         const int32_t *GM_RESTRICT multiplier)
{
    const int32_t image = p->height * p->width * p->groups * p->channels;
    const int32_t window = p->kernel_height * p->kernel_width * p->channels;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const int32_t iy = oy * p->stride_height - p->pad_top;
            for (int32_t ox = 0; ox < p->out_width; ox++) {
                const int32_t ix = ox * p->stride_width - p->pad_left;
                for (int32_t c = 0; c < p->groups * p->out_channels; c++) {
                    const int32_t group = c / p->out_channels;
                    const int64_t acc = gm_conv2d_s16_direct_window(
                        p, bias[c], x + group * p->channels, w + c * window, iy, ix);
                    *y++ = (int16_t)gm_requant_wide(acc, multiplier[c], p->shift, p->zero_point,
                                                    p->low, p->high);
                }
            }
        }
        x += image;
    }
}

void gm_conv2d_s16_direct(const gm_conv2d_s16_direct_t *p, int16_t *GM_RESTRICT y,
                          const int16_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                          const int64_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier);

#ifdef __cplusplus
}
#endif

#endif
