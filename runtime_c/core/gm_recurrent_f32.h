/* SPDX-License-Identifier: Apache-2.0
 * Recurrent layers: RNN, GRU and LSTM over a sequence, in one or both directions. */
#ifndef GM_RECURRENT_F32_H
#define GM_RECURRENT_F32_H

#include "gm_types.h"
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { GM_RNN = 0, GM_GRU = 1, GM_LSTM = 2 } gm_recurrent_cell;

typedef enum {
    GM_TANH = 0,
    GM_SIGMOID = 1,
    GM_RELU = 2,
    GM_AFFINE = 3,
    GM_LEAKY_RELU = 4,
    GM_THRESHOLDED_RELU = 5,
    GM_SCALED_TANH = 6,
    GM_HARD_SIGMOID = 7,
    GM_ELU = 8,
    GM_SOFTSIGN = 9,
    GM_SOFTPLUS = 10
} gm_recurrent_function;

typedef struct {
    int32_t cell;                /* GM_RNN, GM_GRU or GM_LSTM */
    int32_t steps;               /* 0 or more */
    int32_t batch;               /* 1 or more */
    int32_t features;            /* features of a step of x, 1 or more */
    int32_t hidden;              /* features of the state, 1 or more */
    int32_t directions;          /* 1, or 2: forward and then reverse */
    int32_t reverse;             /* 1: the only direction is from the last step to the first */
    int32_t linear_before_reset; /* GRU: 1: the reset gate acts on the product with the state */
    int32_t input_forget;        /* LSTM: 1: the forget gate is 1 - input gate */
    float clip;                  /* what activations are given is clamped to [-clip, clip] */
    int32_t activations[3];      /* of the gates, of the candidate, of the cell's state */
    float alpha[3];
    float beta[3];
} gm_recurrent_f32_t;

GM_INLINE float gm_recurrent_clip(const gm_recurrent_f32_t *p, float x)
{
    x = x < -p->clip ? -p->clip : x;
    return x > p->clip ? p->clip : x;
}

GM_INLINE float gm_recurrent_activation(const gm_recurrent_f32_t *p, int32_t which, float x)
{
    const float alpha = p->alpha[which];
    const float beta = p->beta[which];
    switch (p->activations[which]) {
    case GM_SIGMOID:
        return 1.0f / (1.0f + expf(-x));
    case GM_RELU:
        return x > 0.0f ? x : 0.0f;
    case GM_AFFINE:
        return alpha * x + beta;
    case GM_LEAKY_RELU:
        return x < 0.0f ? alpha * x : x;
    case GM_THRESHOLDED_RELU:
        return x > alpha ? x : 0.0f;
    case GM_SCALED_TANH:
        return alpha * tanhf(beta * x);
    case GM_HARD_SIGMOID:
        x = alpha * x + beta;
        x = x > 0.0f ? x : 0.0f;
        return x < 1.0f ? x : 1.0f;
    case GM_ELU:
        return x < 0.0f ? alpha * (expf(x) - 1.0f) : x;
    case GM_SOFTSIGN:
        return x / (1.0f + fabsf(x));
    case GM_SOFTPLUS: /* does not overflow */
        return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
    default:
        return tanhf(x);
    }
}

GM_INLINE float gm_recurrent_gate(const gm_recurrent_f32_t *p, int32_t which, float x)
{
    return gm_recurrent_activation(p, which, gm_recurrent_clip(p, x));
}

/* y[i] = bias[i] + sum_k w[i][k] * x[k]; bias is [rows], y itself, or NULL. */
GM_OUTLINE void gm_recurrent_rows(float *y, const float *bias, const float *w, const float *x,
                                  int32_t rows, int32_t count)
{
    for (int32_t i = 0; i < rows; i += 4) {
        const int32_t last = rows - i < 4 ? rows - i : 4;
        /* a row past the end is row i again: its sum is dropped */
        const float *w0 = w + i * count;
        const float *w1 = w0 + (last > 1 ? count : 0);
        const float *w2 = w0 + (last > 2 ? 2 * count : 0);
        const float *w3 = w0 + (last > 3 ? 3 * count : 0);
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int32_t k = 0; k < count; k++) {
            const float value = x[k];
            sum[0] += value * w0[k];
            sum[1] += value * w1[k];
            sum[2] += value * w2[k];
            sum[3] += value * w3[k];
        }
        for (int32_t j = 0; j < last; j++) {
            y[i + j] = sum[j] + (bias ? bias[i + j] : 0.0f);
        }
    }
}

/* Gates i, o, f, candidate: [4][hidden]; peepholes of i, o, f: [3][hidden] or NULL. */
GM_INLINE void gm_recurrent_lstm(const gm_recurrent_f32_t *p, float *h, float *c, const float *r,
                                 const float *peephole, float *gates)
{
    const int32_t n = p->hidden;
    gm_recurrent_rows(gates, gates, r, h, 4 * n, n);
    for (int32_t i = 0; i < n; i++) {
        float in = gates[i];
        float out = gates[n + i];
        float forget = gates[2 * n + i];
        float cell = c[i];
        if (peephole) {
            in += peephole[i] * cell;
            forget += peephole[2 * n + i] * cell;
        }
        in = gm_recurrent_gate(p, 0, in);
        forget = p->input_forget ? 1.0f - in : gm_recurrent_gate(p, 0, forget);
        cell = forget * cell + in * gm_recurrent_gate(p, 1, gates[3 * n + i]);
        c[i] = cell;
        if (peephole) {
            out += peephole[n + i] * cell;
        }
        h[i] = gm_recurrent_gate(p, 0, out) * gm_recurrent_activation(p, 2, cell);
    }
}

/* Gates z, r, candidate, product of the state with the candidate's weights: [4][hidden]. */
GM_INLINE void gm_recurrent_gru(const gm_recurrent_f32_t *p, float *h, const float *r,
                                const float *bias, float *gates)
{
    const int32_t n = p->hidden;
    float *reset = gates + n;
    float *candidate = gates + 2 * n;
    float *product = gates + 3 * n;
    const float *weights = r + 2 * n * n;
    gm_recurrent_rows(gates, gates, r, h, 2 * n, n);
    for (int32_t i = 0; i < n; i++) {
        reset[i] = gm_recurrent_gate(p, 0, reset[i]);
    }
    if (p->linear_before_reset) {
        gm_recurrent_rows(product, bias, weights, h, n, n);
        for (int32_t i = 0; i < n; i++) {
            candidate[i] += reset[i] * product[i];
        }
    } else {
        for (int32_t i = 0; i < n; i++) {
            reset[i] *= h[i];
        }
        gm_recurrent_rows(candidate, candidate, weights, reset, n, n);
    }
    for (int32_t i = 0; i < n; i++) {
        const float update = gm_recurrent_gate(p, 0, gates[i]);
        const float fresh = gm_recurrent_gate(p, 1, candidate[i]);
        h[i] = (1.0f - update) * fresh + update * h[i];
    }
}

GM_INLINE void gm_recurrent_rnn(const gm_recurrent_f32_t *p, float *h, const float *r, float *gates)
{
    gm_recurrent_rows(gates, gates, r, h, p->hidden, p->hidden);
    for (int32_t i = 0; i < p->hidden; i++) {
        h[i] = gm_recurrent_gate(p, 0, gates[i]);
    }
}

GM_INLINE void gm_recurrent_start(float *state, const float *initial, int32_t count)
{
    if (initial == NULL) {
        memset(state, 0, (size_t)count * sizeof *state);
    } else if (state != initial) {
        memcpy(state, initial, (size_t)count * sizeof *state);
    }
}

/* y: [steps][directions][batch][hidden] or NULL; yh, yc: the last states,
 * [directions][batch][hidden], yc of LSTM only; x: [steps][batch][features];
 * w: [directions][gates][hidden][features]; r: [directions][gates][hidden][hidden];
 * b: [directions][gates][hidden] or NULL; rb: [directions][hidden], the bias of the product
 * that the reset gate acts on, or NULL; lengths: [batch], steps that count, or NULL;
 * h0, c0: the first states, or NULL for zeros; peephole: [directions][3][hidden] or NULL;
 * gates: [gates][hidden], with linear_before_reset one more. yh may be h0, yc may be c0. */
GM_INLINE void gm_recurrent_f32_core(const gm_recurrent_f32_t *p, float *y, float *yh, float *yc,
                                     const float *x, const float *w, const float *r, const float *b,
                                     const float *rb, const int32_t *lengths, const float *h0,
                                     const float *c0, const float *peephole, float *gates)
{
    const int32_t n = p->hidden;
    const int32_t rows = n * (p->cell == GM_LSTM ? 4 : p->cell == GM_GRU ? 3 : 1);
    gm_recurrent_start(yh, h0, p->directions * p->batch * n);
    if (p->cell == GM_LSTM) {
        gm_recurrent_start(yc, c0, p->directions * p->batch * n);
    }
    for (int32_t line = 0; line < p->directions * p->batch; line++) {
        const int32_t direction = line / p->batch;
        const int32_t sample = line % p->batch;
        const int32_t reverse = p->directions == 2 ? direction : p->reverse;
        const float *weights = w + direction * rows * p->features;
        const float *recurrent = r + direction * rows * n;
        const float *bias = b ? b + direction * rows : NULL;
        int32_t length = lengths ? lengths[sample] : p->steps;
        length = length < 0 ? 0 : length > p->steps ? p->steps : length;
        float *h = yh + line * n;
        for (int32_t step = 0; step < length; step++) {
            const int32_t t = reverse ? length - 1 - step : step;
            const float *now = x + (t * p->batch + sample) * p->features;
            gm_recurrent_rows(gates, bias, weights, now, rows, p->features);
            if (p->cell == GM_LSTM) {
                const float *peep = peephole ? peephole + direction * 3 * n : NULL;
                gm_recurrent_lstm(p, h, yc + line * n, recurrent, peep, gates);
            } else if (p->cell == GM_GRU) {
                gm_recurrent_gru(p, h, recurrent, rb ? rb + direction * n : NULL, gates);
            } else {
                gm_recurrent_rnn(p, h, recurrent, gates);
            }
            if (y) {
                memcpy(y + (t * p->directions * p->batch + line) * n, h, (size_t)n * sizeof *h);
            }
        }
        for (int32_t t = length; y && t < p->steps; t++) {
            memset(y + (t * p->directions * p->batch + line) * n, 0, (size_t)n * sizeof *h);
        }
    }
}

void gm_recurrent_f32(const gm_recurrent_f32_t *p, float *y, float *yh, float *yc, const float *x,
                      const float *w, const float *r, const float *b, const float *rb,
                      const int32_t *lengths, const float *h0, const float *c0,
                      const float *peephole, float *gates);

#ifdef __cplusplus
}
#endif

#endif
