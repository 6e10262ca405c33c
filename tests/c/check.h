/* SPDX-License-Identifier: Apache-2.0
 * CHECK(condition): end the test with the place and the condition if it does not hold. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
