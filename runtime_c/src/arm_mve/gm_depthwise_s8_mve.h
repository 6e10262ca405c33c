/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, int8, NHWC, for MVE: sixteen channels at a time, then eight. */
#ifndef GM_DEPTHWISE_S8_MVE_H
#define GM_DEPTHWISE_S8_MVE_H

#include "gm_depthwise_s8.h"
#include "gm_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_depthwise_s8_t gm_depthwise_s8_mve_t;

/* The most taps of a window. */
#define GM_DEPTHWISE_MVE_TAPS 64

/* Where the values of each tap lie, an even number of them; assembly moves these pointers on. */
typedef struct {
    uint32_t at[GM_DEPTHWISE_MVE_TAPS + 4];
} gm_mve_taps_t;

/* Two products of two bytes fit 16 bits, more do not: pairs of taps are added to sums of 32 bits.
 * r0: pointers of taps, r1: weights, r4: y, r5: channels left, r6: pairs of taps, r8: zero point,
 * r9 and r10: bounds, r11: shift. */
/* clang-format off */
#define GM_MVE_ACCUMULATE(product, low, even, odd)                                                 \
    "vmovlb.s16 " low ", " product "\n\tvmovlt.s16 " product ", " product "\n\t"                   \
    "vadd.i32 " even ", " even ", " low "\n\tvadd.i32 " odd ", " odd ", " product "\n\t"

/* Sixteen channels: q0-q3 are sums of channels 0 4 8 12, 2 6 10 14, 1 5 9 13, 3 7 11 15. */
#define GM_MVE_SIXTEEN                                                                             \
    "vldrw.u32 q0, [r1], #16\n\tvldrw.u32 q1, [r1], #16\n\t"                                       \
    "vldrw.u32 q2, [r1], #16\n\tvldrw.u32 q3, [r1], #16\n\t"                                       \
    "mov r12, r0\n\tdls lr, r6\n"                                                                  \
    "2:\n\tldrd r2, r3, [r12]\n\t"                                                                 \
    "vldrb.u8 q6, [r2], #16\n\tvldrb.u8 q7, [r1], #16\n\t"                                         \
    "vmullb.s8 q4, q6, q7\n\tvmullt.s8 q5, q6, q7\n\t"                                             \
    "vldrb.u8 q6, [r3], #16\n\tvldrb.u8 q7, [r1]\n\t"                                              \
    "vmullt.s8 q7, q6, q7\n\tvadd.i16 q5, q5, q7\n\t"                                              \
    "vldrb.u8 q7, [r1], #16\n\tvmullb.s8 q6, q6, q7\n\tvadd.i16 q4, q4, q6\n\t"                   \
    "strd r2, r3, [r12], #8\n\t"                                                                   \
    GM_MVE_ACCUMULATE("q4", "q6", "q0", "q1") GM_MVE_ACCUMULATE("q5", "q7", "q2", "q3")            \
    "le lr, 2b\n\t"                                                                                \
    "cmp r11, #0\n\tbeq 3f\n\t"                                                                    \
    "vshl.s32 q0, r11\n\tvshl.s32 q1, r11\n\tvshl.s32 q2, r11\n\tvshl.s32 q3, r11\n"               \
    "3:\n\tvldrw.u32 q4, [r1], #16\n\tvldrw.u32 q5, [r1], #16\n\t"                                \
    "vrmulh.s32 q0, q0, q4\n\tvldrw.u32 q6, [r1], #16\n\tvrmulh.s32 q1, q1, q5\n\t"               \
    "vldrw.u32 q7, [r1], #16\n\tvrmulh.s32 q2, q2, q6\n\tvrmulh.s32 q3, q3, q7\n\t"               \
    "vqmovnb.s32 q0, q0\n\tvqmovnb.s32 q2, q2\n\tvqmovnt.s32 q0, q1\n\tvqmovnt.s32 q2, q3\n\t"    \
    "vqadd.s16 q0, q0, r8\n\tvqadd.s16 q2, q2, r8\n\tvdup.8 q4, r9\n\tvdup.8 q5, r10\n\t"         \
    "vqmovnb.s16 q0, q0\n\tvqmovnt.s16 q0, q2\n\tvmax.s8 q0, q0, q4\n\tvmin.s8 q0, q0, q5\n\t"    \
    "vstrb.8 q0, [r4], #16\n\t"

/* Eight channels or fewer: q0 are sums of channels 0 2 4 6, q1 of 1 3 5 7. */
#define GM_MVE_EIGHT                                                                               \
    "vldrw.u32 q0, [r1], #16\n\tvldrw.u32 q1, [r1], #16\n\tvctp.16 r5\n\t"                         \
    "mov r12, r0\n\tdls lr, r6\n"                                                                  \
    "2:\n\tldrd r2, r3, [r12]\n\tvldrb.s16 q3, [r1], #8\n\tvldrb.s16 q5, [r1], #8\n\t"            \
    "vpstt\n\tvldrbt.s16 q2, [r2], #8\n\tvldrbt.s16 q4, [r3], #8\n\t"                             \
    "vmul.i16 q2, q2, q3\n\tvmul.i16 q4, q4, q5\n\tstrd r2, r3, [r12], #8\n\t"                    \
    "vadd.i16 q2, q2, q4\n\t" GM_MVE_ACCUMULATE("q2", "q3", "q0", "q1")                            \
    "le lr, 2b\n\t"                                                                                \
    "cmp r11, #0\n\tbeq 3f\n\tvshl.s32 q0, r11\n\tvshl.s32 q1, r11\n"                              \
    "3:\n\tvldrw.u32 q2, [r1], #16\n\tvldrw.u32 q3, [r1], #16\n\t"                                \
    "vrmulh.s32 q0, q0, q2\n\tvrmulh.s32 q1, q1, q3\n\tvdup.16 q4, r9\n\tvdup.16 q5, r10\n\t"     \
    "vqmovnb.s32 q0, q0\n\tvqmovnt.s32 q0, q1\n\tvqadd.s16 q0, q0, r8\n\t"                        \
    "vmax.s16 q0, q0, q4\n\tvmin.s16 q0, q0, q5\n\t"                                              \
    "vpst\n\tvstrbt.16 q0, [r4], #8\n\t"
/* clang-format on */

/* Move taps by so many bytes; after an odd number of them comes one whose weights are zeros. */
GM_INLINE void gm_mve_taps_move(gm_mve_taps_t *to, const gm_mve_taps_t *from, int32_t count,
                                int32_t bytes)
{
    for (int32_t t = 0; t < count; t += 4) {
        vstrwq_u32(to->at + t, vaddq_n_u32(vldrwq_u32(from->at + t), (uint32_t)bytes));
    }
    to->at[count] = to->at[count - 1];
}

/* All channels of one pixel, from an even number of taps. */
GM_INLINE void gm_depthwise_s8_mve_pixel(const gm_depthwise_s8_mve_t *p, int8_t *to,
                                         gm_mve_taps_t *taps, const int8_t *weights)
{
    register uint32_t *t __asm__("r0") = taps->at;
    register const int8_t *w __asm__("r1") = weights;
    register int8_t *y __asm__("r4") = to;
    register int32_t left __asm__("r5") = p->channels;
    register int32_t pairs __asm__("r6") = (p->kernel_height * p->kernel_width + 1) / 2;
    register int32_t zero_point __asm__("r8") = p->zero_point;
    register int32_t low __asm__("r9") = p->low;
    register int32_t high __asm__("r10") = p->high;
    register int32_t shift __asm__("r11") = p->shift;
    if (p->channels >= 16) {
        __asm__ volatile("1:\n\t" GM_MVE_SIXTEEN "subs r5, r5, #16\n\t"
                         "cmp r5, #16\n\tbge 1b"
                         : "+r"(w), "+r"(y), "+r"(left)
                         : "r"(t), "r"(pairs), "r"(zero_point), "r"(low), "r"(high), "r"(shift)
                         : "r2", "r3", "r12", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7",
                           "cc", "memory");
    }
    if (p->channels % 16 != 0) {
        __asm__ volatile("1:\n\t" GM_MVE_EIGHT "subs r5, r5, #8\n\t"
                         "bgt 1b"
                         : "+r"(w), "+r"(y), "+r"(left)
                         : "r"(t), "r"(pairs), "r"(zero_point), "r"(low), "r"(high), "r"(shift)
                         : "r2", "r3", "r12", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "cc",
                           "memory");
    }
}

/* One row of the output from the rows of the input that it sees, NULL for one of padding. */
GM_INLINE void gm_depthwise_s8_mve_row(const gm_depthwise_s8_mve_t *p, int8_t *y,
                                       const void *const *rows, const int8_t *w, void *scratch)
{
    const int32_t count = p->kernel_height * p->kernel_width;
    const int32_t span = (p->kernel_width - 1) * p->dilation_width + 1;
    gm_mve_taps_t taps;
    gm_mve_taps_t start; /* of the window at pixel 0 of the rows */
    const uint32_t fill = (uint32_t)(uintptr_t)scratch;
    const int32_t step = p->stride_width * p->channels;
    const int32_t moved = (p->channels + 7) / 8 * 8; /* what a pixel moves pointers on */
    int complete = 1;
    int ready = 0;
    (void)gm_mve_fill((int8_t *)scratch, p->fill, p->channels);
    for (int32_t i = 0; i < p->kernel_height; i++) {
        complete = complete && rows[i] != NULL;
        for (int32_t j = 0; j < p->kernel_width; j++) {
            start.at[i * p->kernel_width + j] =
                (uint32_t)(uintptr_t)rows[i] + (uint32_t)(j * p->dilation_width * p->channels);
        }
    }
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        if (complete && first >= 0 && first + span <= p->width) {
            if (!ready) {
                gm_mve_taps_move(&taps, &start, count, first * p->channels);
            } else if (step != moved) {
                gm_mve_taps_move(&taps, &taps, count, step - moved);
            }
            ready = 1;
        } else {
            for (int32_t i = 0; i < p->kernel_height; i++) {
                for (int32_t j = 0; j < p->kernel_width; j++) {
                    const int32_t x = first + j * p->dilation_width;
                    const int inside = rows[i] != NULL && x >= 0 && x < p->width;
                    const int32_t t = i * p->kernel_width + j;
                    taps.at[t] = inside ? start.at[t] + (uint32_t)(first * p->channels) : fill;
                }
            }
            taps.at[count] = fill;
            ready = 0;
        }
        gm_depthwise_s8_mve_pixel(p, y, &taps, w);
        y += p->channels;
    }
}

/* w: per sixteen channels, and per eight of the rest, biases, weights of an even number of taps,
 * multipliers; biases and multipliers in the order of the sums above.
 * scratch: a pixel of padding. */
GM_INLINE void gm_depthwise_s8_mve_core(const gm_depthwise_s8_mve_t *p, int8_t *y, const int8_t *x,
                                        const int32_t *w, void *scratch)
{
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_depthwise_s8_mve_row(p, y, rows, (const int8_t *)(const void *)w, scratch);
            y += p->out_width * p->channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_depthwise_s8_mve(const gm_depthwise_s8_mve_t *p, int8_t *y, const int8_t *x,
                         const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
