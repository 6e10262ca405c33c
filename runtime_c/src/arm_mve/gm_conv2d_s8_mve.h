/* SPDX-License-Identifier: Apache-2.0
 * Convolution, int8, NHWC, for MVE: windows of two pixels are gathered, then multiplied with four
 * channels at a time. */
#ifndef GM_CONV2D_S8_MVE_H
#define GM_CONV2D_S8_MVE_H

#include "gm_conv2d_s8.h"
#include "gm_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv2d_s8_t gm_conv2d_s8_mve_t;

/* Pixels `first` to `first + count` of a row, padding where they lie outside. */
GM_INLINE int8_t *gm_conv2d_s8_mve_part(const gm_conv2d_s8_mve_t *p, int8_t *to, const int8_t *row,
                                        int32_t first, int32_t count)
{
    if (first >= 0 && first + count <= p->width) {
        return gm_mve_copy(to, row + first * p->channels, count * p->channels);
    }
    const int32_t before = first >= 0 ? 0 : (first + count < 0 ? count : -first);
    const int32_t rest = count - before;
    const int32_t room = p->width - (first + before);
    const int32_t inside = rest < room ? rest : (room < 0 ? 0 : room);
    to = gm_mve_fill(to, p->fill, before * p->channels);
    to = gm_mve_copy(to, row + (first + before) * p->channels, inside * p->channels);
    return gm_mve_fill(to, p->fill, (rest - inside) * p->channels);
}

/* The values of one window, row after row, as one run at `to`. It starts at pixel `first` of the
 * rows; a row that is NULL and pixels outside the image are padding. */
GM_INLINE void gm_conv2d_s8_mve_gather(const gm_conv2d_s8_mve_t *p, int8_t *to,
                                       const void *const *rows, int32_t first)
{
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int8_t *const row = (const int8_t *)rows[i];
        if (row == NULL) {
            to = gm_mve_fill(to, p->fill, p->kernel_width * p->channels);
        } else if (p->dilation_width == 1) {
            to = gm_conv2d_s8_mve_part(p, to, row, first, p->kernel_width);
        } else {
            for (int32_t j = 0; j < p->kernel_width; j++) {
                to = gm_conv2d_s8_mve_part(p, to, row, first + j * p->dilation_width, 1);
            }
        }
    }
}

/* `count` neighbouring pixels of the output from the rows of the input that they see; without
 * `scratch`, windows are one pixel, read where they lie. */
GM_INLINE void gm_conv2d_s8_mve_row(const gm_conv2d_s8_mve_t *p, int32_t count, int8_t *y,
                                    const void *const *rows, const int8_t *w, void *scratch)
{
    const int32_t inner = p->kernel_height * p->kernel_width * p->channels;
    const int32_t whole = (inner - 1) / GM_MVE_LANES;
    const int32_t head = inner - whole * GM_MVE_LANES;
    int8_t *const copy = (int8_t *)scratch;
    int32_t at = p->descending ? (count - 1) / 2 * 2 : 0;
    for (int32_t left = count; left > 0; left -= 2) {
        const int32_t second = at + 1 < count;
        const int32_t first = at * p->stride_width - p->pad_left;
        int8_t *const to = y + at * p->out_channels;
        gm_mve_pair_t pair = {copy,
                              second ? copy + (inner + 3) / 4 * 4 : copy,
                              head,
                              whole,
                              to,
                              second ? to + p->out_channels : to,
                              p->zero_point,
                              p->shift,
                              p->low,
                              p->high,
                              p->out_channels};
        if (copy == NULL) {
            pair.x0 = (const int8_t *)rows[0] + first * inner;
            pair.x1 = second ? pair.x0 + inner : pair.x0;
        } else {
            gm_conv2d_s8_mve_gather(p, copy, rows, first);
            if (second) {
                gm_conv2d_s8_mve_gather(p, copy + (inner + 3) / 4 * 4, rows,
                                        first + p->stride_width);
            }
        }
        gm_mve_pair(&pair, w);
        at += p->descending ? -2 : 2;
    }
}

/* w: as for gm_mve_pair. scratch: the windows of two pixels; NULL for a 1x1 convolution of stride 1
 * that widens. y may be x where a window has one pixel and pixels of y are not wider. Without
 * groups. */
GM_INLINE void gm_conv2d_s8_mve_core(const gm_conv2d_s8_mve_t *p, int8_t *y, const int8_t *x,
                                     const int32_t *w, void *scratch)
{
    const int pointwise = p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
                          p->stride_width == 1 && p->padded_width == 0;
    if (pointwise) {
        /* the whole batch is one row */
        const void *const rows[1] = {x};
        gm_conv2d_s8_mve_t line = *p;
        line.width = p->batch * p->height * p->width;
        gm_conv2d_s8_mve_row(&line, line.width, y, rows, (const int8_t *)(const void *)w, scratch);
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
            gm_conv2d_s8_mve_row(p, p->out_width, y, rows, (const int8_t *)(const void *)w,
                                 scratch);
            y += p->out_width * p->out_channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_conv2d_s8_mve(const gm_conv2d_s8_mve_t *p, int8_t *y, const int8_t *x, const int32_t *w,
                      void *scratch);

#ifdef __cplusplus
}
#endif

#endif
