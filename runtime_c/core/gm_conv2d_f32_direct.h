/* SPDX-License-Identifier: Apache-2.0
 * Convolution, float, NHWC, straight from its definition: for windows of any height and weights
 * that are computed at run time; needs no scratch. */
#ifndef GM_CONV2D_F32_DIRECT_H
#define GM_CONV2D_F32_DIRECT_H

#include "gm_clamp_f32.h"

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
    float low;            /* clamp of y; infinities where there is none */
    float high;
    int32_t descending; /* not used here */
} gm_conv2d_f32_direct_t;

/* Returns the products of one window: x and w at the start of a group, iy and ix its first tap. */
GM_INLINE float gm_conv2d_f32_direct_window(const gm_conv2d_f32_direct_t *p, float acc,
                                            const float *x, const float *w, int32_t iy, int32_t ix)
{
    const int32_t pitch = p->groups * p->channels;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int32_t row = iy + i * p->dilation_height;
        for (int32_t j = 0; j < p->kernel_width; j++) {
            const int32_t col = ix + j * p->dilation_width;
            const int inside = row >= 0 && row < p->height && col >= 0 && col < p->width;
            if (inside) {
                const float *u = x + (row * p->width + col) * pitch;
                for (int32_t k = 0; k < p->channels; k++) {
                    acc += u[k] * w[k];
                }
            }
            w += p->channels;
        }
    }
    return acc;
}

/* w: [groups * out_channels][kernel_height][kernel_width][channels]; bias: one for each output
 * channel, or NULL. y must not overlap x. */
GM_INLINE void gm_conv2d_f32_direct_core(const gm_conv2d_f32_direct_t *p, float *GM_RESTRICT y,
                                         const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                                         const float *GM_RESTRICT bias)
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
                    const float acc = gm_conv2d_f32_direct_window(
                        p, bias ? bias[c] : 0.0f, x + group * p->channels, w + c * window, iy, ix);
                    *y++ = gm_clamp_f32(acc, p->low, p->high);
                }
            }
        }
        x += image;
    }
}

void gm_conv2d_f32_direct(const gm_conv2d_f32_direct_t *p, float *GM_RESTRICT y,
                          const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                          const float *GM_RESTRICT bias);

#ifdef __cplusplus
}
#endif

#endif
