/* Prints the processor cycles of every layer of the network `digits`, by semihosting. On a board
 * with a serial port, let print() write there. */
#include "layer_cycles.h"

#include "board_semihosting.h"
#include "digits.h"

static digits_arena arena;
static uint32_t start;
static uint32_t cycles[DIGITS_LAYER_COUNT];

static void print(const char *text)
{
    board_print(text);
}

static void print_number(uint32_t value)
{
    char text[11];
    char *digit = text + sizeof text - 1;
    *digit = 0;
    do {
        *--digit = (char)('0' + value % 10u);
        value /= 10u;
    } while (value != 0);
    print(digit);
}

#if defined(__riscv)

static void counter_start(void)
{
}

static uint32_t counter(void)
{
    uint32_t value;
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, mcycle\n.option pop\n"
                     : "=r"(value));
    return value;
}

#else

static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u; /* CTRL, LOAD, VAL */
static int has_cyccnt;

#if __ARM_ARCH_ISA_THUMB >= 2
static volatile uint32_t *const demcr = (volatile uint32_t *)0xE000EDFCu;
static volatile uint32_t *const dwt = (volatile uint32_t *)0xE0001000u; /* CTRL, CYCCNT */

static void cyccnt_start(void)
{
    *demcr |= UINT32_C(1) << 24; /* TRCENA */
    dwt[1] = 0;
    dwt[0] |= 1u; /* CYCCNTENA */
    for (volatile int wait = 0; wait < 10; wait++) {
    }
    has_cyccnt = dwt[1] != 0;
}

static uint32_t cyccnt(void)
{
    return dwt[1];
}
#else
static void cyccnt_start(void)
{
}

static uint32_t cyccnt(void)
{
    return 0;
}
#endif

/* The cycle counter of the DWT unit. Cortex-M0 has none, nor has QEMU: there SysTick counts, modulo
 * 2^24. */
static void counter_start(void)
{
    cyccnt_start();
    systick[1] = 0x00FFFFFFu;
    systick[2] = 0;
    systick[0] = 5; /* on, from the processor's clock, no interrupt */
}

static uint32_t counter(void)
{
    return has_cyccnt ? cyccnt() : (0x00FFFFFFu - systick[2]) << 8;
}

#endif

void layer_begin(int32_t layer)
{
    (void)layer;
    start = counter();
}

void layer_end(int32_t layer)
{
    cycles[layer] += counter() - start;
}

int main(void)
{
    int shift = 0;
    counter_start();
#if !defined(__riscv)
    shift = has_cyccnt ? 0 : 8;
#endif
    digits_init(&arena);
    if (digits_run(&arena, NULL, NULL) != DIGITS_OK) {
        return 1;
    }
    for (uint32_t layer = 0; layer < DIGITS_LAYER_COUNT; layer++) {
        print("layer ");
        print_number(layer);
        print(": ");
        print_number(cycles[layer] >> shift);
        print(" cycles\n");
    }
    return 0;
}
