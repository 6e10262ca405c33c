/* SPDX-License-Identifier: Apache-2.0
 * Startup of Cortex-M cores: vectors, FPU and Helium, faults as sentences, SysTick as clock. */
#include "board_startup.h"

#include "board_semihosting.h"

#if !defined(__ARM_ARCH_PROFILE) || __ARM_ARCH_PROFILE != 'M'
#error "compile with -mcpu=cortex-m0 or another M-profile core"
#endif

/* The program runs on the process stack; faults have their own, which is sound when that one
 * has overflowed. */
static uint64_t fault_stack[48];

void board_fault(void);
void board_report_fault(const uint32_t *frame);

/* clang-format off */
__attribute__((naked)) void board_reset(void)
{
    __asm__ volatile(
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
        "ldr r0, =0xE000ED88\n" /* CPACR: full access to CP10 and CP11, the FPU and Helium */
        "ldr r1, [r0]\n"
        "ldr r2, =0x00F00000\n"
        "orrs r1, r1, r2\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
#endif
#if __ARM_ARCH_ISA_THUMB >= 2
        "ldr r0, =0xE000ED24\n" /* SHCSR: memory, bus and usage faults are told apart */
        "ldr r1, [r0]\n"
        "ldr r2, =0x00070000\n"
        "orrs r1, r1, r2\n"
        "str r1, [r0]\n"
#endif
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
        "ldr r0, =board_stack_bottom\n"
        "msr psplim, r0\n"
#endif
        "ldr r0, =board_stack_top\n"
        "msr psp, r0\n"
        "movs r0, #2\n" /* CONTROL.SPSEL: the process stack */
        "msr control, r0\n"
        "isb\n"
        "ldr r0, =board_start\n"
        "bx r0\n"
        ".ltorg\n");
}

__attribute__((naked)) void board_fault(void)
{
    __asm__ volatile(
        "mrs r0, psp\n"
        "ldr r1, =board_report_fault\n"
        "bx r1\n"
        ".ltorg\n");
}
/* clang-format on */

static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u; /* CTRL, LOAD, VAL */
static volatile uint32_t wraps;                                             /* of its 24 bits */

void board_tick(void);
void board_tick(void)
{
    wraps++;
}

void board_clock_start(void)
{
    systick[1] = 0x00FFFFFFu;
    systick[2] = 0;
    systick[0] = 7; /* on, with interrupt, from the processor's clock */
}

uint32_t board_clock(void)
{
    uint32_t before;
    uint32_t down;
    do {
        before = wraps;
        down = systick[2];
        /* again while a wrap is not counted yet: ICSR.PENDSTSET */
    } while (before != wraps || (*(const volatile uint32_t *)0xE000ED04u & (UINT32_C(1) << 26)));
    return (before << 24) + (0x00FFFFFFu - down);
}

static const char *const names[7] = {
    "", "", "non-maskable interrupt", "hard fault", "memory fault", "bus fault", "usage fault"};

#if __ARM_ARCH_ISA_THUMB >= 2
static const struct {
    uint32_t mask;
    const char *text;
} reasons[] = {
    {UINT32_C(1) << 0, "instruction fetched from memory that is not executable"},
    {UINT32_C(1) << 1, "data access to protected memory"},
    {UINT32_C(1) << 8, "instruction fetched from an address without memory"},
    {UINT32_C(3) << 9, "data access to an address without memory"},
    {UINT32_C(0x1818), "stack overflow"},
    {UINT32_C(1) << 16, "undefined instruction"},
    {UINT32_C(1) << 17, "jump to an even address"},
    {UINT32_C(1) << 19, "FPU or Helium instruction while they are off"},
    {UINT32_C(1) << 20, "stack overflow"},
    {UINT32_C(1) << 24, "unaligned access"},
    {UINT32_C(1) << 25, "division by zero"},
};

static void print_reasons(void)
{
    const uint32_t status = *(const volatile uint32_t *)0xE000ED28u; /* CFSR */
    for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (status & reasons[i].mask) {
            board_print(", ");
            board_print(reasons[i].text);
        }
    }
    if (status & (UINT32_C(1) << 15)) {
        board_print(", address ");
        board_print_hex(*(const volatile uint32_t *)0xE000ED38u); /* BFAR */
    }
}
#else
static void print_reasons(void)
{
}
#endif

__attribute__((used)) void board_report_fault(const uint32_t *frame)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    board_print("fault: ");
    board_print(number < 7u ? names[number] : "unexpected interrupt");
    if (frame >= board_stack_bottom && frame + 8 <= board_stack_top) {
        print_reasons();
        static const char *const registers[8] = {", r0 ",  ", r1 ", ", r2 ", ", r3 ",
                                                 ", r12 ", ", lr ", ", pc ", ", xpsr "};
        for (unsigned i = 0; i < 8u; i++) {
            board_print(registers[i]);
            board_print_hex(frame[i]);
        }
    } else {
        board_print(", stack overflow");
    }
    board_print("\n");
    board_exit(BOARD_FAULT_STATUS);
}

__attribute__((section(".vectors"), used)) static const struct {
    const void *stack;
    void (*handlers[15])(void);
} vectors = {
    fault_stack + sizeof fault_stack / sizeof fault_stack[0],
    {board_reset, board_fault, board_fault, board_fault, board_fault, board_fault, board_fault,
     board_fault, board_fault, board_fault, board_fault, board_fault, board_fault, board_fault,
     board_tick},
};
