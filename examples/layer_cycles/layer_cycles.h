/* Hooks of the network `digits`: compile digits.c with -DDIGITS_HOOK_HEADER='"layer_cycles.h"'.
 * For another network, put its name in place of DIGITS. */
#ifndef LAYER_CYCLES_H
#define LAYER_CYCLES_H

#include <stdint.h>

void layer_begin(int32_t layer);
void layer_end(int32_t layer);

#define DIGITS_HOOK_BEGIN(layer) layer_begin(layer)
#define DIGITS_HOOK_END(layer) layer_end(layer)

#endif
