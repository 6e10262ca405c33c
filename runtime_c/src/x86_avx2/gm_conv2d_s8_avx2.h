/* SPDX-License-Identifier: Apache-2.0
 * Convolution, int8, NHWC, for AVX2: windows of four pixels are gathered as 16-bit values, then
 * multiplied with eight channels at a time. */
#ifndef GM_CONV2D_S8_AVX2_H
#define GM_CONV2D_S8_AVX2_H

#include "gm_avx2.h"
#include "gm_conv2d_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv2d_s8_t gm_conv2d_s8_avx2_t;

/* `count` pixels of a row from pixel `first` on, padding where they lie outside. */
GM_INLINE int16_t *gm_conv2d_s8_avx2_part(const gm_conv2d_s8_avx2_t *p, int16_t *to,
                                          const int8_t *row, int32_t first, int32_t count)
{
    if (row != NULL && first >= 0 && first + count <= p->width) {
        gm_avx2_widen(to, row + first * p->channels, count * p->channels);
        return to + count * p->channels;
    }
    for (int32_t j = 0; j < count; j++) {
        const int32_t at = first + j;
        const int inside = row != NULL && at >= 0 && at < p->width;
        for (int32_t c = 0; c < p->channels; c++) {
            to[c] = (int16_t)(inside ? row[at * p->channels + c] : p->fill);
        }
        to += p->channels;
    }
    return to;
}

/* The values of one window, row after row. It starts at pixel `first` of the rows; a row that is
 * NULL is padding. */
GM_INLINE void gm_conv2d_s8_avx2_gather(const gm_conv2d_s8_avx2_t *p, int16_t *to,
                                        const void *const *rows, int32_t first)
{
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int8_t *const row = (const int8_t *)rows[i];
        if (p->dilation_width == 1) {
            to = gm_conv2d_s8_avx2_part(p, to, row, first, p->kernel_width);
        } else {
            for (int32_t j = 0; j < p->kernel_width; j++) {
                to = gm_conv2d_s8_avx2_part(p, to, row, first + j * p->dilation_width, 1);
            }
        }
    }
}

/* `count` neighbouring pixels of the output from the rows of the input that they see. All windows
 * of four pixels are read before their results are written. */
GM_INLINE void gm_conv2d_s8_avx2_row(const gm_conv2d_s8_avx2_t *p, int32_t count, int8_t *y,
                                     const void *const *rows, const int16_t *GM_RESTRICT w,
                                     const int32_t *GM_RESTRICT bias,
                                     const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    const gm_avx2_scale_t scale = {p->shift, p->zero_point, p->low, p->high};
    const int32_t pairs = (p->kernel_height * p->kernel_width * p->channels + 1) / 2;
    const int32_t out = p->out_channels;
    int16_t *const windows = (int16_t *)scratch;
    for (int32_t i = 0; i < 4; i++) {
        windows[2 * pairs * (i + 1) - 1] = 0;
    }
    for (int32_t at = 0; at < count; at += 4) {
        const int32_t pixels = count - at < 4 ? count - at : 4;
        for (int32_t i = 0; i < pixels; i++) {
            gm_conv2d_s8_avx2_gather(p, windows + 2 * pairs * i, rows,
                                     (at + i) * p->stride_width - p->pad_left);
        }
        if (pixels == 4) {
            gm_avx2_product(&scale, 4, y, windows, 2 * pairs, pairs, out, w, bias, multiplier);
        } else {
            for (int32_t i = 0; i < pixels; i++) {
                gm_avx2_product(&scale, 1, y + i * out, windows + 2 * pairs * i, 0, pairs, out, w,
                                bias, multiplier);
            }
        }
        y += pixels * out;
    }
}

/* w, bias, multiplier: as for gm_avx2_product. scratch: the windows of four pixels as 16-bit
 * values, an even number for each. Without groups. */
GM_INLINE void gm_conv2d_s8_avx2_core(const gm_conv2d_s8_avx2_t *p, int8_t *y, const int8_t *x,
                                      const int16_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                      const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    const int pointwise = p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
                          p->stride_width == 1 && p->padded_width == 0;
    if (pointwise) {
        /* the whole batch is one row */
        const void *const rows[1] = {x};
        gm_conv2d_s8_avx2_t line = *p;
        line.width = p->batch * p->height * p->width;
        gm_conv2d_s8_avx2_row(&line, line.width, y, rows, w, bias, multiplier, scratch);
        return;
    }
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_conv2d_s8_avx2_row(p, p->out_width, y, rows, w, bias, multiplier, scratch);
            y += p->out_width * p->out_channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_conv2d_s8_avx2(const gm_conv2d_s8_avx2_t *p, int8_t *y, const int8_t *x,
                       const int16_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                       const int32_t *GM_RESTRICT multiplier, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
